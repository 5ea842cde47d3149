r"""GenPRM: a generative judge verifies steps with code that it writes and runs, trained on checks that match relative progress.

    label of step k:  P_k = q_k / q_(k-1) >= eps,     q: share of right continuations, q_0: before the first step;  0 once q was 0
    kept: checks of a solution, a rationale (analysis, code, output, verdict) of each step, in which every verdict is the label
    judge: -mean log p(what it wrote itself)
    score of step k:  mean over N rationales of p(Yes) / (p(Yes) + p(No)) at the verdict

One right continuation is enough for a hard label (q_k > 0), even after a wrong step, if it makes up for it; relative progress asks
what a step cost. Running the code replaces a guess at its result, and several rationales may vote.

Zhao et al. 2025, arXiv:2504.00891. eps = 0.8, that all steps after q_k = 0 are wrong, and that a solution is dropped for one
verdict that is not its label are the paper's (from notes on it). The course of a rationale, the output as its first line of code
ends, the chance at the last Yes or No, and its mean are those of the released code (RyanLiu112/GenPRM, 590bc94,
src/prm_evaluation/infer_module/genprm_inference.py). There a rationale without a verdict scores 1/2, here it does not vote.
(inferred): the prompts, votes, and the least chance of a step as the score of a solution. A larger model, `writer`, writes the
rationales that are kept, there once, here beside the policy, which stays as it is. --judge PATH is a language model that can write
Python; --writer PATH is needed where it is to learn. Steps are lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Group,
    Learner,
    Message,
    Part,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Score,
    Scores,
    Trajectory,
    Update,
    measure,
)
from rewardlab.core.part import decorator
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.judges import first_error_accuracies
from rewardlab.evals.reranked import reranked
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.monte_carlo import count_cost, monte_carlo_steps, sampled_pass_rate
from rewardlab.rewards.operator import operator
from rewardlab.rewards.own_verdict import chance_of
from rewardlab.rewards.progress import relative_progress
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.steps import correct_steps, step_texts, unequal
from rewardlab.rollouts.independent import independent
from rewardlab.sandbox import Limits, ProgramRun, Sandbox
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, PositiveShare
from rewardlab.text.blocks import last_block
from rewardlab.text.filled import filled
from rewardlab.text.splitters import mark

# ---- How well labels of steps, estimated for solutions of the policy, locate the first error -------------------------


@measure
def first_errors_labelled(
    problems: Sequence[Problem], run: Run, *, truth: Reward, annotators: dict[str, Reward], rollout: Rollout,
    threshold: PositiveShare = 0.5,
) -> dict[str, float]:  # fmt: skip
    """ProcessBench's F1 (Zheng et al. 2024, arXiv:2412.06559) of annotators' labels, below `threshold` for a wrong step.

    truth: a reward of steps, 0 or less for a wrong one; solutions of which it says nothing are left out. For each annotator X:
    located.X, the share of flawed solutions whose first error is the first step said to be wrong; cleared.X, that of right ones in
    which no step is; f1.X, their harmonic mean. A step without a label counts as missed in both. flawed: share of the solutions.
    """
    groups = rollout(list(problems), run)
    true = [dict(s.steps) for row in truth(groups, run) for s in row]
    gold = [[paid > 0 for paid in steps.values()] for steps in true if steps]
    if not gold:
        raise RewardlabError(f"first_errors_labelled: {truth} speaks of no step of the replies to {len(problems)} problems")
    found = {"n": float(len(gold)), "flawed": sum(not all(steps) for steps in gold) / len(gold)}
    for name, annotator in annotators.items():
        scores = [s for row in annotator(groups, run) for s in row]
        said = [_said(score, steps, threshold) for score, steps in zip(scores, true, strict=True) if steps]
        cleared, located = first_error_accuracies(gold, said)
        f1 = 2 * cleared * located / (cleared + located) if cleared + located else 0.0
        found |= {f"f1.{name}": f1, f"located.{name}": located, f"cleared.{name}": cleared}
    return found


def _said(score: Score, steps: dict[int, float], threshold: float) -> list[bool]:
    labels = dict(score.steps) if not score.missing else {}
    return [labels[at] >= threshold for at in steps if at in labels]


# ---- Which steps are right, as a judge says that wrote code to check each of them, and read what the code printed ----

ASK = (
    "Problem:\n{question}\n\nSolution so far:\n{steps}\n\nIs step {number}, the last one, right? Analyse it, then write a Python "
    "program that prints what shows it, in a ```python block. You will read what it prints."
)
DECIDE = "[Code Output]\n\n```\n{output}\n```\n\nIs the step right? End with \\boxed{Yes} or \\boxed{No}."
YES, NO = "Yes}", "No}"  # ends of a verdict, between which a judge decides
_BOXED = re.compile(r"\\boxed\{\s{0,3}(?:\\text\{)?(Yes|No)\}", re.IGNORECASE)
PRINTED = 1000  # characters of what a program prints that a judge reads


@dataclass(frozen=True)
class Rationale:
    """said: what the judge wrote, the output that it read, and its verdict.  chance: of Yes; None where there is no verdict."""

    said: tuple[str, str, str]
    chance: float | None = None

    @property
    def right(self) -> bool | None:
        found = _BOXED.findall(self.said[2])
        return found[-1].casefold() == "yes" if found else None


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
    splitter: Literal["newline", "paragraph", "tag", "sentence"] = "newline",
) -> Scores:  # fmt: skip
    """At the end of each step, the chance that it is right, by a judge that writes and runs code.

    The judge, a model of the run, reads the problem and the solution up to the step; the last ```python block of its reply is run
    in the sandbox; it reads the output, and ends with \\boxed{Yes} or \\boxed{No}. A step earns p(Yes) / (p(Yes) + p(No)) there,
    the mean over `votes` such rationales; one without a verdict does not vote, and a step without a vote has no label.
    ask, max_new, temperature: of a rationale.  seconds: for a program; None: none is run, and the judge decides by what it wrote.
    splitter: of replies whose steps the rollout has not marked.
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


# ---- the recipe ---------------------------------------------------------------------------------------------------------

problems_from = decorator(Part)
JUDGE, WRITER = "judge", "writer"


@problems_from
def agreed(
    groups: list[Group], scores: Scores, run: Run, *, writer: str = WRITER, votes: int = 1, max_new: int = 512,
    temperature: float = 0.6,
) -> list[Problem]:  # fmt: skip
    """The problems of checking each labelled step, with a rationale whose verdict is the label in the column `solution`.

    The k-th rationales of a solution's steps are one check of it, kept whole if every verdict is the label, else dropped. Logged:
    agreed, the share of checks that are kept, of those with all verdicts."""
    solutions = [asked for row in zip(groups, scores, strict=True) for t, s in zip(*row, strict=True) if (asked := _asked(t, s))]
    how = Checking(votes=votes, max_new=max_new, temperature=temperature)
    found = iter(rationales(run, writer, [p for asked in solutions for p, _ in asked], how))
    # a step that no rationale fits to leaves its solution without a check
    checks = [(asked, check) for asked in solutions for check in zip(*[next(found) for _ in asked], strict=False)]
    told = [(asked, check) for asked, check in checks if all(r.right is not None for r in check)]
    kept = [pair for pair in told if all(r.right == label for (_, label), r in zip(*pair, strict=True))]
    if told:
        run.log("agreed", len(kept) / len(told))
    return [replace(p, meta={**p.meta, "solution": list(r.said)}) for pair in kept for (p, _), r in zip(*pair, strict=True)]


def _asked(t: Trajectory, score: Score) -> list[tuple[Problem, bool]]:
    labels = {} if score.missing else dict(score.steps)
    return [(p, labels[at] > 0) for p, at in zip(steps_to_check(t), t.steps, strict=False) if at in labels]


@operator(steps=True)
def any_right(share: float) -> float:
    """Hard estimation: 1 where one continuation is right."""
    return float(share > 0)


def genprm(
    base: Recipe | None = None, *, eps: float = 0.8, n: int = 4, continuations: int = 8, votes: int = 4, longest: int = 512,
    judge: str = "copy:policy", writer: str | None = None, lr: float | None = None, choose: int = 8,
) -> Recipe:  # fmt: skip
    """eps: share of the chance that a right step keeps.  n, continuations: replies per problem, and tries from each of their steps.
    votes, longest: rationales of a step, and their tokens.  judge, lr: where it begins (`Learner.init`), and its rate.  writer: of
    the rationales that it learns from, likewise; None: it has learnt before, and stays as it is.  choose: replies to choose from.
    """
    base = base or Recipe(name="genprm", update=Update(problems=8))
    kept = agreed(votes=votes, max_new=longest)
    learner = Learner(JUDGE, judge, sft(lr=lr).but(measure=None, small_lr=1e-5), kept, every=int(writer is not None))
    others = (Learner(WRITER, writer, Recipe(), every=0),) if writer else ()
    return base.but(
        # no objective of its own: the policy samples and continues
        rollout=independent(n=n, steps="newline"),
        reward=labels(continuations, eps),
        measure=reranked(by=aggregate(executed_checks(votes=votes, max_new=longest), by="min"), n=choose),
        also=(*base.also, learner, *others),
    )


def labels(n: int, eps: float) -> Reward:
    """Relative progress by n continuations of each step, and n replies to the problem."""
    return relative_progress(inner=monte_carlo_steps(n=n), start=sampled_pass_rate(n=n), eps=eps)


fidelity = "core"
left_out = (
    "up to three programs for a step, and earlier checks in the judge's view; labels of as many right as wrong solutions, of "
    "problems that have both; top-p .95, top-k 20; and the judge as a critic by whose words a policy refines"
)
data = Data(answer="the gold answer, for the labels", settings={"writer": "copy:policy"})
ANNOTATORS = {"relative": labels(8, 0.5), "hard": any_right(monte_carlo_steps(n=8))}
check = Check(
    says="labels by relative progress locate first errors better than hard labels of as many continuations of a step do",
    versus=None, task="arithmetic", measure="f1.relative", direction="higher", margin=0.019, against="f1.hard",
    settings={"n": 1, "continuations": 1, "votes": 1, "problems": 1, "writer": "copy:policy"},
    by=first_errors_labelled(truth=correct_steps(), annotators=ANNOTATORS, rollout=independent(n=2, steps="newline")), problems=200,
    steps=1, fault=Within("located.hard", high=0.95, says="flawed solutions whose first error a hard label finds"),
    learns=None, start=None,
    tried="eps .2, .4, .6, .8 at 8 continuations, 240 solutions of one seed: F1 .95, .97, .95, .87, hard labels .93: at .8 noise "
    "looks like loss",
    finding="with eps = .5, relative progress finds 93% of the first errors, hard labels 87%, and clears 97% of right solutions, "
    "they nearly all. eps was chosen in this world; at the paper's .8 relative labels are worse. Neither judge nor programs are "
    "tested",
)  # fmt: skip
baseline = None
