"""Rewards for saying how likely an answer is to be right."""

from __future__ import annotations

import math
from typing import Literal

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.text.confidences import stated_confidence

SURE = 1e-3
"""How far from 0 and 1 the logarithmic rule takes a confidence to be, since its loss is unbounded there."""
WORST = {"brier": 2.0, "log": 2.0 - math.log(SURE)}
"""Beside 1 for a right answer: what a reply without a confidence loses, more than any that states one."""


@reward
def states_confidence(trajectory: Trajectory) -> Score:
    """1 where the reply states a confidence from 0 to 1: "Confidence: 0.7", "Confidence: 70%", <confidence>0.7</confidence>."""
    stated = stated_confidence(trajectory.reply)
    return Score(float(stated is not None), why="no confidence stated" if stated is None else f"confidence {stated:g}")


@reward
def confidence(trajectory: Trajectory) -> float:
    """The confidence that the reply states; 0 where it states none. As the weight of a vote it gives a confidence-weighted one."""
    return stated_confidence(trajectory.reply) or 0.0


@reward(over="groups")
def calibration_loss(groups: list[Group], run: Run, *, rule: Literal["brier", "log"] = "brier") -> Scores:
    """What the confidence q that a reply states loses by a proper scoring rule; c is 1 where the reply is right, else 0.

    rule: "brier", (q - c)^2, from 0 to 1; or "log", -log(1 - |q - c|), which is cut off at 6.9.  A reply that states no confidence
    loses 2 + c (log: 8.9 + c): beside a reward of c it is worth as little if it is right. No verdict gives no loss.
    """
    verdicts = correct()(groups, run)
    return [[_loss(t, v, rule) for t, v in zip(group, row, strict=True)] for group, row in zip(groups, verdicts, strict=True)]


def _loss(trajectory: Trajectory, verdict: Score, rule: str) -> Score:
    if verdict.value is None:
        return Score(None, why=verdict.why)
    stated, right = stated_confidence(trajectory.reply), float(verdict.value >= 1.0)
    if stated is None:
        return Score(WORST[rule] + right, why="no confidence stated")
    off = abs(stated - right)
    return Score(off**2 if rule == "brier" else -math.log(max(SURE, 1 - off)), why=f"confidence {stated:g}")
