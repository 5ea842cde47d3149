"""VULPO: a reward in three parts for finding a flaw, scaled by the difficulty of its label and of its sample.

    r = f_label f_sample [right] (1 + w_lines F1(lines) + w_why relevance),    A = r - mean r, not divided by the deviation
    f_label = clip((1 - a_l) / mean over labels of (1 - a), 1/2, 2);    f_sample = 1 + (1 - p)

a_l: running accuracy on samples with this label;  p: share of the group that is right. Most code is sound: who calls all of it
sound is right more often than who looks, and paid for being right alone a policy learns that. The label that is missed pays more,
until it is missed no more often than the other; and hard samples are not drowned by easy ones. Both factors are the same for all
replies of a group: divided by the group's deviation, advantages would lose them.

Li et al. 2025, arXiv:2511.11896: verdict, localisation and judged analysis, with factors of label and sample, are the paper's. Its
formulas were not at hand: all of those above are (inferred), as is that lines and analysis count behind a right verdict alone. The
authors' later code (youpengl/OpenVul, 0012545, grpo.sh), without the factors, does not divide by the deviation either, has no KL
term, n = 8 and the mean over tokens, the default of TRL at its time; it pays .4 for the verdict, .2 for the place and .4 for the
analysis, each judged by a model. The analysis is compared with the column `analysis` by words here, or by `judge`. A base keeps its
credit: one that divides by the deviation takes both factors away.

Replies end with "Lines: 3, 7-9" or "Lines: none", and "Answer: LABEL". judge="mine.py:sound".
"""

from __future__ import annotations

import re
from statistics import fmean
from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Recipe, Run, Score, Scores, Trajectory
from rewardlab.credit.group import center
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import reward_gap
from rewardlab.evals.seeded_subset import own_share
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.another_answer import with_answer
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveShare
from rewardlab.verifiers.text import token_f1

# ----------------------------------------------------------------------------------------------------------------------
#
# A reward that is worth more on what is still done badly: on answers of a kind that are seldom right, and on hard problems.

MEMORY = "harder_pays_more.accuracy"
KINDS = 64
"""Different gold answers that are told apart: they are labels, not texts."""


@reward(over="groups")
def difficulty_weighting(
    groups: list[Group], run: Run, *, inner: Reward, momentum: PositiveShare = 0.1, lowest: PositiveFloat = 0.5,
    highest: PositiveFloat = 2.0, sample: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """The reward `inner` times a factor of the label (the gold answer) and a factor of the group:

        label: clip((1 - a_l) / mean over labels of (1 - a), lowest, highest)       sample: 1 + sample (1 - p)

    a_l: the accuracy on problems with that label, a running mean over steps that begins with the first.  p: the share of the group
    that is right. Replies without a verdict by the task's verifier count in neither, and get none; steps are paid as outcomes.
    """
    verdicts = run.verdicts(groups)
    accuracy = _accuracy(groups, verdicts, run, momentum)
    missed = fmean(1 - a for a in accuracy.values()) if accuracy else 0.0
    factors = {label: min(highest, max(lowest, (1 - a) / missed)) if missed else 1.0 for label, a in accuracy.items()}
    for label, factor in factors.items():
        run.log(f"factor/{label}", factor)
    scores = []
    for group, row, verdict in zip(groups, inner(groups, run), verdicts, strict=True):
        hard = 1 + sample * (1 - fmean(right)) if (right := _right(verdict)) else 1.0
        scores.append([_scaled(s, v, factors.get(_label(t), 1.0) * hard) for t, s, v in zip(group, row, verdict, strict=True)])
    return scores


def _scaled(score: Score, verdict: Score, factor: float) -> Score:
    if score.total is None or verdict.value is None:
        return Score(None, why=score.why or verdict.why)
    return Score(factor * score.total, why=f"{score.total:.3g} times {factor:.3g}")


def _right(row: list[Score]) -> list[bool]:
    return [s.value >= 1.0 for s in row if s.value is not None]


def _label(t) -> str:
    return str(t.problem.answer)


def _accuracy(groups: list[Group], verdicts: Scores, run: Run, momentum: float) -> dict[str, float]:
    """By label, up to this step. run.memory holds [step, before it, after it], so that a step may be scored again."""
    seen: dict[str, list[bool]] = {}
    for group, row in zip(groups, verdicts, strict=True):
        for t, s in zip(group, row, strict=True):
            if s.value is not None:
                seen.setdefault(_label(t), []).append(s.value >= 1.0)
    memory = run.memory.setdefault(MEMORY, {})
    if len(memory.keys() | seen.keys()) > KINDS:
        raise RewardlabError(
            f"harder_pays_more: over {KINDS} different answers, such as {next(iter(seen))[:40]!r}; it compares labels, of which "
            "there are few"
        )
    for label, right in seen.items():
        step, before, after = memory.get(label, (None, None, None))
        before = before if step == run.step else after
        share = fmean(right)
        memory[label] = [run.step, before, share if before is None else (1 - momentum) * before + momentum * share]
    return {label: after for label, (_, _, after) in memory.items()}


# ---- Whether a reply names the lines of the code that are wrong ------------------------------------------------------

_STATED = re.compile(r"^\W{0,4}lines?\W{0,4}:([^\n]{0,400})", re.IGNORECASE | re.MULTILINE)
_NUMBERS = re.compile(r"(?<!\d)(\d{1,6})(?!\d)(?:\s?[-–]\s?(\d{1,6})(?!\d))?")
WIDEST = 1000
"""Lines of a range that count; a longer one is as if it had not been said."""


@reward
def located_lines(trajectory: Trajectory, *, column: str = "lines") -> Score:
    """F1 of the lines that a reply states, as in `Lines: 3, 7-9`, and those of a column of the problem, a list of numbers.

    Where no line is wrong: 1 if none is stated, else 0. The last statement counts. No verdict where the column is no such list.
    """
    listed = list_of(trajectory.problem.meta.get(column))
    if listed is None or not all(isinstance(n, int) and not isinstance(n, bool) for n in listed):
        return Score(None, why=f"the column {column!r} is no list of line numbers")
    wanted, stated = set(listed), stated_lines(trajectory.reply)
    if not wanted or not stated:
        return Score(float(wanted == stated), why=f"{len(stated)} lines stated, {len(wanted)} wrong")
    return Score(2 * len(wanted & stated) / (len(wanted) + len(stated)), why=f"{len(wanted & stated)} of {len(wanted)} lines")


def stated_lines(reply: str) -> set[int]:
    """The numbers after the last `Lines:` of a reply."""
    found = _STATED.findall(reply)
    ranges = [(int(a), int(b or a)) for a, b in _NUMBERS.findall(found[-1])] if found else []
    return {n for a, b in ranges if b - a < WIDEST for n in range(a, b + 1)}


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def finding(lines: float = 0.5, why: float = 0.5, judge: Reward | None = None, verdict: Any = None) -> Reward:
    """The three parts of a reply, the last two behind the first."""
    relevant = judge or with_answer(inner=token_f1(), column="analysis")
    return (verdict or correct()) * (1 + lines * located_lines() + why * relevant)


def vulpo(
    base: Recipe | None = None, *, lines: float = 0.5, why: float = 0.5, judge: Reward | None = None, momentum: float = 0.1,
    lowest: float = 0.5, highest: float = 2.0, sample: float = 1.0, n: int = 8,
) -> Recipe:  # fmt: skip
    """lines, why: weights of the lines and of the analysis.  judge: what rates the analysis from 0 to 1; None: likeness to the
    column `analysis`.  momentum: of the running accuracy.  lowest, highest: bounds of the label's factor.  sample: how much
    more a sample pays that nobody gets right."""
    base = base or grpo(n=n).but(credit=center() >> to_go(), weighting=token_mean())
    paid = finding(lines, why, judge, base.reward)
    return base.but(reward=difficulty_weighting(inner=paid, momentum=momentum, lowest=lowest, highest=highest, sample=sample))


fidelity = "reading"
left_out = (
    "ContextVul, its data with context from repositories; the fine-tuning before RL; and the model that judges place and analysis: "
    "lines are compared by number, and the analysis by words, unless there is a `judge`"
)
data = Data(
    answer='"vulnerable" or "safe"',
    lines="the numbers of the wrong lines: a list",
    analysis="what is wrong, in words",
    rows=[
        {
            "prompt": "1: char b[8];\n2: strcpy(b, name);\nIs it vulnerable?",
            "answer": "vulnerable",
            "lines": [2],
            "analysis": "strcpy may write beyond b",
        },
        {
            "prompt": "1: char b[8];\n2: strncpy(b, name, 7);\nIs it vulnerable?",
            "answer": "safe",
            "lines": [],
            "analysis": "the copy is bounded",
        },
    ],
)

# momentum 1: the accuracies are those of the replies at hand, not of what an untrained policy wrote in its one step
SCALED = difficulty_weighting(inner=finding(), momentum=1.0).named("scaled")
UNSCALED = aggregate(finding()).named("unscaled")
# by construction: both kinds of reply are written so that the rival orders them wrongly
check = Check(
    says="scaled by how hard label and sample are, a careful reader earns more than one who calls everything sound; unscaled, less",
    versus=None, task="flaws:test_size=4000", measure="gap.scaled", direction="higher", margin=0.2, against="gap.unscaled",
    model="untrained", by=own_share(inner=reward_gap(reward=SCALED + UNSCALED + 0.0 * correct())), problems=4000, steps=1,
    guard=Within("gap.scaled", low=0.0, says="scaled: careful less lazy, in standard deviations"),
    fault=Within("gap.unscaled", high=0.0, says="unscaled: careful less lazy, in standard deviations"), learns=None, start=None,
    sanity=True,
    finding="a careful reader of code earns .26 standard deviations more than one who calls all of it sound; without the factors "
    ".18 less. The replies are written so: it shows that the factors turn the order round, not that a policy learns to look",
)  # fmt: skip
baseline = "grpo"
