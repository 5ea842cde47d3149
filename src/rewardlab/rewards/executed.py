"""Which steps are right, as a judge says that wrote code to check each of them, and read what the code printed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rewardlab.core import Group, Message, Problem, Run, Sampling, Score, Scores, Trajectory
from rewardlab.core.domain import NonNegativeFloat, PositiveFloat, PositiveInt
from rewardlab.rewards.monte_carlo import count_cost
from rewardlab.rewards.own_verdict import chance_of
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import step_texts, unequal
from rewardlab.sandbox import Limits, ProgramRun, Sandbox
from rewardlab.text.blocks import last_block
from rewardlab.text.filled import filled
from rewardlab.text.splitters import mark

ASK = (
    "Problem:\n{question}\n\nSolution so far:\n{steps}\n\nIs step {number}, the last one, right? Analyse it, then write a Python "
    "program that prints what shows it, in a ```python block. You will read what it prints."
)
DECIDE = "[Code Output]\n\n```\n{output}\n```\n\nIs the step right? End with \\boxed{Yes} or \\boxed{No}."
YES, NO = "Yes}", "No}"
"""The ends of a verdict, between which a judge decides."""
_BOXED = re.compile(r"\\boxed\{(Yes|No)\}")
PRINTED = 1000
"""Characters of what a program prints that a judge reads."""


@dataclass(frozen=True)
class Rationale:
    """said: what the judge wrote, the output that it read, and its verdict.  chance: of Yes; None where there is no verdict."""

    said: tuple[str, str, str]
    chance: float | None = None

    @property
    def right(self) -> bool | None:
        found = _BOXED.findall(self.said[2])
        return found[-1] == "Yes" if found else None


@dataclass(frozen=True)
class Checking:
    """How a judge checks.  ask: with {question}, {steps} and {number}.  seconds: for each program; None: no program is run."""

    ask: str = ASK
    votes: int = 1
    max_new: int = 512
    temperature: float = 0.6
    seconds: float | None = 5.0


@reward(over="groups")
def executed_checks(
    groups: list[Group], run: Run, *, model: str = "judge", ask: str = ASK, votes: PositiveInt = 1, max_new: PositiveInt = 512,
    temperature: NonNegativeFloat = 0.6, seconds: PositiveFloat | None = 5.0,
    splitter: Literal["newline", "tag", "sentence"] = "newline",
) -> Scores:  # fmt: skip
    """At the end of each step, the chance that it is right, by a judge that writes code and reads what it prints.

    The judge, a model of the run, reads the problem and the solution up to the step; the last ```python block of its reply is run
    in the sandbox; it reads the output, and ends with \\boxed{Yes} or \\boxed{No}. A step earns p(Yes) / (p(Yes) + p(No)) there,
    the mean over `votes` such rationales (Zhao et al. 2025, arXiv:2504.00891); one without a verdict does not vote, and a step
    without a vote has no label.  ask, max_new, temperature: of a rationale.  seconds: for a program; None: nothing is run, and the
    judge decides by what it wrote.  splitter: of replies whose steps the rollout has not marked.
    """
    policy = run.policy
    rows = [t if t.steps else mark(t, splitter, policy.pieces, policy.name) for group in groups for t in group]
    asked = [steps_to_check(t, splitter, ask) for t in rows]
    found = iter(rationales(run, model, [p for of in asked for p in of], Checking(ask, votes, max_new, temperature, seconds)))
    scores = iter([_score(t, splitter, [next(found) for _ in of]) for t, of in zip(rows, asked, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def steps_to_check(t: Trajectory, splitter: str = "newline", ask: str = ASK) -> list[Problem]:
    """The problem of checking each step of a solution, which is read up to there; none where text and tokens disagree."""
    lines = step_texts(t, splitter)
    if len(lines) != len(t.steps):
        return []
    numbered = [f"{i}: {line}" for i, line in enumerate(lines, 1)]
    return [
        t.problem.reworded(filled(ask, question=t.problem.question, steps="\n".join(numbered[:k]), number=str(k)))
        for k in range(1, len(lines) + 1)
    ]


def rationales(run: Run, model: str, asked: Sequence[Problem], how: Checking) -> list[list[Rationale]]:
    """`how.votes` rationales of a model of the run for each question; none where its context cannot hold one."""
    judge, sampling = run.model(model), Sampling(how.max_new, how.temperature)
    read = judge.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    fits = [i for i, row in enumerate(read) if len(row) + how.max_new <= judge.context]
    begun = [read[i] for i in fits for _ in range(how.votes)]
    # the reply stops at the end of a block, before the judge makes up what it prints
    first = judge.extend(begun, replace(sampling, stop=("\n```\n",)), run.rng("rationales")) if begun else []
    outputs = [filled(DECIDE, output=x) for x in _printed([t.reply for t in first], how.seconds)]
    told = judge.read(first, [[Message("user", output)] for output in outputs]) if first else []
    room = [k for k, row in enumerate(told) if len(row) + how.max_new <= judge.context]
    ends = judge.extend([told[k] for k in room], sampling, run.rng("rationales")) if room else []
    count_cost(run, len(first) + len(ends), sum(len(read[i]) for i in fits))
    said = [(first[k].turns[-1].text, outputs[k], t.turns[-1].text) for k, t in zip(room, ends, strict=True)]
    done = dict(zip(room, _decided(judge, [told[k] for k in room], said), strict=True))
    votes = how.votes
    found = {i: [done[k] for k in range(n * votes, (n + 1) * votes) if k in done] for n, i in enumerate(fits)}
    return [found.get(i, []) for i in range(len(asked))]


def _printed(replies: Sequence[str], seconds: float | None) -> list[str]:
    """What the program of each reply prints, or why there is nothing; all run together."""
    programs = {k: code for k, reply in enumerate(replies) if (code := last_block(reply, "python", "py"))}
    if seconds is None:
        return ["not run"] * len(replies)
    ran = Sandbox(Limits(seconds=seconds)).run_programs([ProgramRun(code) for code in programs.values()])
    said = {k: (o.stdout.strip()[:PRINTED] + f"\n{o.why[:PRINTED]}").strip() for k, o in zip(programs, ran, strict=True)}
    return [said.get(k, "no program was found") for k in range(len(replies))]


def _decided(judge: Any, told: Sequence[Trajectory], said: Sequence[tuple[str, str, str]]) -> list[Rationale]:
    """The rationales, with the chance of Yes at the last verdict of each."""
    at = [list(_BOXED.finditer(end)) for *_, end in said]
    known = [(t, end[: found[-1].start(1)]) for t, (*_, end), found in zip(told, said, at, strict=True) if found]
    chances = iter(chance_of(judge, [t for t, _ in known], [stem for _, stem in known], YES, NO))
    return [Rationale(x, next(chances) if found else None) for x, found in zip(said, at, strict=True)]


def _score(t: Trajectory, splitter: str, found: Sequence[Sequence[Rationale]]) -> Score:
    if not found:
        return unequal(step_texts(t, splitter), t)
    chances = [[r.chance for r in of if r.chance is not None] for of in found]
    steps = [(at, float(np.mean(row))) for at, row in zip(t.steps, chances, strict=True) if row]
    return Score(steps=steps) if steps else Score(None, why="the judge gave no verdict that can be read")
