"""A judge of steps of known quality: how good must it be, before what is built on it pays?"""

from __future__ import annotations

import math

from rewardlab.core import Group, Run, Score, Scores, Trajectory, uniform_of
from rewardlab.core.domain import Auc

from .imperfect import NORMAL
from .reward import Reward, reward


@reward(over="groups")
def imperfect_steps(groups: list[Group], run: Run, *, of: Reward, auc: Auc = 0.8) -> Scores:
    """At the end of each step the chance that it is right, as a judge says it who ranks right steps above wrong ones with
    probability `auc`.

    of: the reward of steps that knows, 1 for a right one.  The noise is that of `imperfect`, for each step by itself; it belongs to
    the problem and the reply up to there, so that asking again does not help.
    """
    distance = math.sqrt(2) * NORMAL.inv_cdf(auc)
    return [
        [_said(t, s, distance, run.seed) for t, s in zip(*rows, strict=True)] for rows in zip(groups, of(groups, run), strict=True)
    ]


def _said(t: Trajectory, truth: Score, distance: float, seed: int) -> Score:
    if truth.missing:
        return truth
    steps = []
    for at, value in truth.steps:
        uniform = uniform_of("imperfect_steps", seed, t.problem.key, t.ids[: at + 1].tobytes())
        z = (distance if value >= 1.0 else -distance) / 2 + NORMAL.inv_cdf(uniform)
        steps.append((at, 1 / (1 + math.exp(-distance * z))))
    return Score(steps=steps) if steps else Score(None, why="no step was judged")
