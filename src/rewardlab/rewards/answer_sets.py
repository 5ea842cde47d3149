"""Rewards for replies that list several answers, each with a confidence (`text/confidences.py`)."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.core.domain import PositiveInt
from rewardlab.text.confidences import Stated, judged_answers, stated_answers

from .reward import reward


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
