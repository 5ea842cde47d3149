"""Rewards for replies that list several answers, each with a confidence (`text/confidences.py`)."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.core.domain import PositiveFloat, PositiveInt
from rewardlab.rewards.reward import reward
from rewardlab.text.confidences import Stated, judged_answers, stated_answers

ROUNDING = 1e-9
"""0.7 + 0.2 + 0.1 is not 1 in binary."""


@reward
def answers_listed(trajectory: Trajectory, *, k: PositiveInt, confidences: bool = True) -> Score:
    """1 where the reply lists exactly k answers, alike or not, and, with `confidences`, states one from 0 to 1 for each."""
    listed = stated_answers(trajectory.reply)
    if confidences and any(x.confidence is None for x in listed):
        return Score(0.0, why="an answer has no confidence")
    return Score(float(len(listed) == k), why=f"{len(listed)} answers")


@reward
def confidences_within(trajectory: Trajectory, *, total: PositiveFloat = 1.0) -> Score:
    """1 where the confidences that a reply states for its answers sum to at most `total`; 0 where an answer has none.

    total: 1 where one answer at most is right, since then their chances sum to no more.
    """
    stated = [x.confidence for x in stated_answers(trajectory.reply)]
    known = [q for q in stated if q is not None]
    inside = len(known) == len(stated) and sum(known) <= total + ROUNDING
    return Score(float(inside), why=f"confidences of {sum(known):g} in all")


@reward
def distinct_answers(trajectory: Trajectory, *, k: PositiveInt, confidences: bool = True) -> Score:
    """1 where the reply lists exactly k answers that all differ and, with `confidences`, states one from 0 to 1 for each."""
    listed = stated_answers(trajectory.reply)
    different = len({x.key for x in listed})
    if confidences and any(x.confidence is None for x in listed):
        return Score(0.0, why="an answer has no confidence")
    return Score(float(len(listed) == k == different), why=f"{len(listed)} answers, {different} of them different")


@reward(over="groups")
def answers_covered(groups: list[Group], run: Run) -> Scores:
    """How many different right answers a reply lists, by the task's verifier, which judges each on its own."""
    return [[Score(None if x is None else float(sum(ok for _, ok in x))) for x in row] for row in judged_answers(groups, run)]


@reward(over="groups")
def set_brier(groups: list[Group], run: Run) -> Scores:
    """The sum over a reply's different answers of (q - c)^2: q is the confidence stated for it, c whether it is right.

    An answer without a confidence adds 1.
    """
    return [[Score(None if x is None else sum(map(_squared, x))) for x in row] for row in judged_answers(groups, run)]


def _squared(judged: tuple[Stated, bool]) -> float:
    stated, right = judged
    return 1.0 if stated.confidence is None else (stated.confidence - right) ** 2
