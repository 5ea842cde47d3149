"""Judging solutions: error-prone chains of arithmetic, to be judged right or wrong, step by step.

A step is right if it goes on from the number before it, does what the question asks next, and comes out right; so the step
that goes wrong is wrong, and those that only carry its result on are right. The answer is right if it is the gold answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Task, Term, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import APPLY, arithmetic
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.splitters import cut

# ----------------------------------------------------------------------------------------------------------------------
#
# The prompt that asks a verifier to judge a solution step by step, and how its judgement is parsed. Both are text, so that models
# with different tokenizers can work together. A line for each step: what it should have been, what it comes to, whether they
# agree.
#
#     Start with 7. Add 5.            7+5=12 13 -
#     1: 7+5=13               ->      Answer: 13 13 +
#     2: Answer: 13                   Final: -
#
# A small model learns to compare two numbers that stand side by side, and hardly two that are lines apart.

TOLD = (
    "Judge the numbered steps of a solution to the problem below. Write one short line for each step that ends in + if the step is "
    "right, and in - if it is wrong. End with the line 'Final: +' if the solution's answer is right, or 'Final: -' if it is wrong."
)
"""What a language model that was not taught to judge is told; small models that were need no words."""
WORDS = {True: "right", False: "wrong"}
SIGNS = {True: "+", False: "-"}
_LINE = re.compile(r"[^\n]{0,400} [*]{0,2}([-+])[.*]{0,3}")
_FINAL = re.compile(r"[*]{0,2}Final: ?[*]{0,2} ?([^\n]{0,20}?)[.*]{0,3}")
_NUMBERED = re.compile(r"(\d{1,3}): (?:[^\n]{0,40}, )?(right|wrong)")
"""How judgements were written once, which verifiers of older runs still do."""


class Judgement(NamedTuple):
    """steps: a verdict for each step, in order.  final: of the answer; None where none was given."""

    steps: list[bool]
    final: bool | None


def to_judge(question: str, steps: Sequence[str], right: bool | None = None, told: str = "", **meta: Any) -> Problem:
    """The problem of judging a solution to `question`; `right`, whether its answer is, is the gold final verdict.  told: how to."""
    lines = [f"{i}: {step}" for i, step in enumerate(steps, 1)]
    return ask(
        "\n".join([*([told, ""] if told else []), question, *lines]),
        None if right is None else WORDS[right],
        count=len(steps),
        **meta,
    )


def begun(verifier: Any, problems: Sequence[Problem], max_new: int) -> list[Trajectory | None]:
    """The problems as `verifier` reads them; None where `max_new` tokens more would not fit its context."""
    rows = verifier.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return [row if len(row) + max_new <= verifier.context else None for row in rows]


def written(lines: Sequence[str], steps: Sequence[bool], final: bool, should: Sequence[str]) -> str:
    """A judgement as a verifier writes it. lines: the solution's; should: what each should have been; steps: whether it is that."""
    judged = [f"{want} {_result(line)} {SIGNS[ok]}" for want, line, ok in zip(should, lines, steps, strict=True)]
    return "\n".join([*judged, f"Final: {SIGNS[final]}"])


def _result(line: str) -> str:
    """What a step comes to: the text after its last = or colon."""
    return re.split("[=:]", line)[-1].strip() or "?"


def read(reply: str) -> Judgement:
    """The judgement in a reply, as far as it parses: a line for each step, the final verdict last."""
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    concluded = _FINAL.fullmatch(lines[-1]) if lines else None
    final = concluded[1] if concluded else None
    steps = []
    for i, line in enumerate(lines[: len(lines) - (final is not None)], 1):
        numbered = _NUMBERED.fullmatch(line)
        match = numbered or _LINE.fullmatch(line)
        if not match or (numbered and int(numbered[1]) != i):
            # a line that is no verdict, or a gap in the numbers: which step a verdict is about is unknown
            return Judgement([], None)
        steps.append(match[match.lastindex or 0] in ("right", "+"))
    return Judgement(steps, {"right": True, "wrong": False, "+": True, "-": False}.get(final or ""))


def over(judgement: str) -> bool:
    """Whether nothing that is written further can matter: the final verdict is given, or a line is no verdict on any step."""
    lines = [line.strip() for line in judgement.splitlines() if line.strip()]
    return bool(lines) and (_FINAL.fullmatch(lines[-1]) is not None or not read(judgement).steps)


# ---- the task ---------------------------------------------------------------------------------------------------------

_EQUATION = re.compile(r"(\d+)([-+*])(\d+)=\d+")
NEAR = (-10, -2, -1, 1, 2, 10)


def verdicts(
    *,
    difficulty: int = 3,
    error: Share = 0.22,
    doubt: Share = 0.15,
    test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
) -> Task:
    """Solutions of arithmetic chains of `difficulty` steps.

    error: of the solver, per step.  doubt: how often the teacher of `demonstrate` gets a step wrong when checking it; the
    verdicts follow from that.  size: so many training problems, in epochs; None: endless.
    """
    for name, share in (("error", error), ("doubt", doubt)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"verdicts: {name} is a probability between 0 and 1, not {share}")
    sample, key = partial(_sample, difficulty=difficulty, error=error), ("verdicts", difficulty, error)
    return Task(
        name="verdicts",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_verdict",
        max_new=20 * (difficulty + 1),
        about=f"solutions of {difficulty} arithmetic steps, to be judged step by step",
        demonstrate=partial(_demonstrate, doubt=doubt),
        columns=("prompt", "answer", "count", "lines", "should", "verdicts", "solution"),
        warmup_steps=1000,
    )


def _sample(rng: random.Random, *, difficulty: int, error: float) -> Problem:
    solver = arithmetic(difficulty=difficulty, error=error, test_size=1)
    # a random position of an endless source is a random problem
    problem = solver.train[rng.getrandbits(40)]
    assert solver.demonstrate is not None
    lines = solver.demonstrate(problem, rng).splitlines()
    should = worked(problem.meta["steps"], lines)
    judged = [line == want for line, want in zip(lines, should, strict=True)]
    right = lines[-1] == f"Answer: {problem.answer}"
    return to_judge(
        problem.question, lines, right, lines=lines, should=should, verdicts=judged, solution=written(lines, judged, right, should)
    )


def worked(gold: list[str], lines: list[str]) -> list[str]:
    """What each line of a solution should have been, given those before it; `gold`: the right equations.

    After the last of them, every line should be the answer.
    """
    value, should = _EQUATION.fullmatch(gold[0])[1], []  # type: ignore[index]
    for want, line in zip(gold, lines, strict=False):
        _, sign, operand = _EQUATION.fullmatch(want).groups()  # type: ignore[union-attr]
        # a line of the solver may end on anything; only small numbers are carried on
        computable = value.isascii() and value.isdigit() and len(value) < 7
        should.append(f"{value}{sign}{operand}={APPLY[sign](int(value), int(operand)) if computable else '?'}")
        value = line.rpartition("=")[2]
    return [*should, *(f"Answer: {value}" for _ in lines[len(gold) :])]


def _demonstrate(problem: Problem, rng: random.Random, *, doubt: float) -> str:
    """The judgement of a careless teacher, who calls a right step wrong where the teacher's own result is wrong."""
    should = [_slip(step, rng) if rng.random() < doubt else step for step in problem.meta["should"]]
    judged = [line == want for line, want in zip(problem.meta["lines"], should, strict=True)]
    return written(problem.meta["lines"], judged, all(judged), should)


def _slip(step: str, rng: random.Random) -> str:
    """The step with a result that is a little off."""
    left, sign, result = step.rpartition(": " if step.startswith("Answer") else "=")
    wrong_results = [value for off in NEAR if (value := int(result) + off) >= 0]
    return f"{left}{sign}{rng.choice(wrong_results)}"


# ---- Rewards for judging solutions, and step rewards that a judgement gives to the solution --------------------------

TERM = "step_verdicts"


@reward
def final_verdict(trajectory: Trajectory) -> Score:
    """1 where the final verdict, "Final: +" or "Final: -", is the gold one."""
    gold = trajectory.problem.answer
    if gold not in WORDS.values():
        return Score(None, why=f"the gold verdict {gold!r} is neither right nor wrong")
    verdict = read(trajectory.reply).final
    if verdict is None:
        return Score(0.0, why="no final verdict found")
    return Score(float(WORDS[verdict] == gold), why=f"said {WORDS[verdict]}, the solution is {gold}")


@reward
def every_step_judged(trajectory: Trajectory) -> float:
    """1 where the judgement has a verdict for each of the meta["count"] steps and a final one."""
    judgement = read(trajectory.reply)
    return float(judgement.final is not None and len(judgement.steps) == trajectory.problem.meta.get("count"))


@reward(over="groups")
def step_verdicts(groups: list[Group], run: Run, *, model: str = "verifier", max_new: PositiveInt = 96, told: str = "") -> Scores:
    """The verdict of the model `model` on each of the K steps (lines): +1/K at the end of a right one, -1/K of a wrong one.

    The rollout marks the steps (steps="newline"). Solutions that do not fit the verifier's context are not judged; where it
    does not give one verdict for each step, steps earn nothing.  told: how to judge, before each solution.  Zha et al. 2025,
    arXiv:2505.15034
    """
    rollouts = [t for group in groups for t in group]
    steps = [cut(t.reply, "newline") for t in rollouts]
    verifier = run.model(model)
    rows = begun(verifier, [to_judge(t.problem.question, x, told=told) for t, x in zip(rollouts, steps, strict=True)], max_new)
    to_judge_rows = {i: t for i, t in enumerate(rows) if t is not None and len(steps[i]) == len(rollouts[i].steps)}
    judgements = verifier.extend(list(to_judge_rows.values()), Sampling(max_new, stop_when=over), run.rng("verdicts"))
    scores = [_step_score((), "not judged: the solution does not fit the verifier's context")] * len(rollouts)
    for i, judgement in zip(to_judge_rows, judgements, strict=True):
        verdicts, ends = read(judgement.reply).steps, rollouts[i].steps
        rewards = tuple((position, (1 if right else -1) / len(ends)) for position, right in zip(ends, verdicts, strict=False))
        scores[i] = _step_score(rewards if len(verdicts) == len(ends) else (), f"said {judgement.reply[:80]!r}")
    scores_in_order = iter(scores)
    return [[next(scores_in_order) for _ in group] for group in groups]


def _step_score(steps: tuple[tuple[int, float], ...], why: str) -> Score:
    return Score(terms={TERM: Term(None, steps)}, why=why)
