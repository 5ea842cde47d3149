"""Verdicts on the steps of a solution, each after the result of a tool call about that step."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.data.values import list_of
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat
from rewardlab.text.inspections import Inspection, inspections_of, is_about, verdicts_in

LEAST = 0.05
"""The chance of its label that a verdict counts with at least: the log-loss of one that is wrong and sure stays finite."""


@reward(over="groups")
def grounded_verdicts(
    groups: list[Group], run: Run, *, tool: NonNegativeFloat = 1.0, calibration: NonNegativeFloat = 1.0, steps: str = "steps",
    verdicts: str = "verdicts",
) -> Scores:  # fmt: skip
    """For each step of the solution in the column `steps`, on the token of its verdict:

    1[verdict = label] + calibration log p(label) + tool support

    support: 1 for a right verdict before which a tool answered that was asked about this very step.  p: the chance of the token
    when it was sampled, if the verdict is the label, else what that chance leaves; .05 at least. Without recorded chances, 1.
    verdicts: the column of labels. Steps without a verdict count as wrong and sure, each on a token of its own, the last that hold
    no verdict; so every episode on a problem has as many rewards, and a group's mean over them favours none. A verdict without a
    step earns nothing. Zou et al. 2025, arXiv:2510.06217
    """
    how = (tool, calibration)
    return [[_grounded(t, run, how, steps, verdicts) for t in group] for group in groups]


def _grounded(t: Trajectory, run: Run, how: tuple[float, float], steps: str, verdicts: str) -> Score:
    labels, texts = (list_of(t.problem.meta.get(column)) for column in (verdicts, steps))
    if not labels or not texts or len(labels) != len(texts):
        return Score(None, why=f"the problem has no columns {steps!r} and {verdicts!r} of the same length")
    tool, calibration = how
    said, signs = inspections_of(t), list(_signs(t, run))
    if len(said) != len(signs):
        return Score(None, why="text and tokens disagree about the verdicts")
    paid = [
        (at, _worth(x, bool(label), is_about(x.call, str(text)), chance, tool, calibration))
        for x, label, text, (at, chance) in zip(said, labels, texts, signs, strict=False)
    ]
    sure = calibration * math.log(LEAST)
    left = [(at, sure) for at in _last_free(t, {at for at, _ in paid}, len(labels) - len(paid))]
    return Score(steps=[*paid, *left], why=f"{len(said)} verdicts")


def _last_free(t: Trajectory, taken: set[int], number: int) -> list[int]:
    """So many positions from an episode's end back that are not taken; where it is too short for them, its end for the others."""
    free = [at for at in range(len(t) - 1, int(t.mask.argmax()) - 1, -1) if at not in taken]
    return [*free, *[len(t) - 1] * number][:number]


def _worth(said: Inspection, label: bool, looked: bool, chance: float | None, tool: float, calibration: float) -> float:
    right = said.right == label
    of_label = 1.0 if chance is None else max(LEAST, chance if right else 1 - chance)
    return right * (1 + tool * looked) + calibration * math.log(of_label)


def _signs(t: Trajectory, run: Run) -> Iterator[tuple[int, float | None]]:
    """Of each line that is a verdict: the position of the token that holds its sign, and the chance it was sampled with."""
    position = 0
    for turn in t.turns:
        if turn.author is not None:
            pieces = run.policy.pieces(turn.ids)
            if pieces and not turn.text.endswith(pieces[-1]):
                # the token that ends a reply is no part of its text
                pieces[-1] = ""
            starts = [0, *accumulate(map(len, pieces))]
            for start, _ in verdicts_in("".join(pieces)):
                i = bisect_right(starts, start) - 1
                yield position + i, None if turn.logprobs is None else math.exp(float(turn.logprobs[i]))
        position += len(turn.ids)


@reward
def inspected(trajectory: Trajectory, *, verdicts: str = "verdicts") -> Score:
    """1 where the verdicts on all steps equal the labels in the column, and nothing else is judged; for episodes with or without a
    tool.
    """
    labels = list_of(trajectory.problem.meta.get(verdicts))
    if not labels:
        return Score(None, why=f"the problem has no list {verdicts!r}")
    said = [x.right for x in inspections_of(trajectory)]
    return Score(float(said == [bool(x) for x in labels]), why=f"{len(said)} verdicts on {len(labels)} steps")
