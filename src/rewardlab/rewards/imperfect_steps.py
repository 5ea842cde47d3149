"""A step judge of known quality: how accurate must a process reward be before it pays?"""

from __future__ import annotations

import math

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.noise import FRESH, NORMAL, step_errors
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import Auc, Share


@reward(over="groups")
def imperfect_steps(groups: list[Group], run: Run, *, inner: Reward, auc: Auc = 0.8, fresh: Share = FRESH) -> Scores:
    """At the end of each step the chance that it is right, by a simulated judge that ranks right steps above wrong ones with
    probability `auc`.

    inner: the reward of steps that knows, 1 for a right one.  The noise is that of `imperfect`; it belongs to the problem and
    the reply up to there, so that asking again does not help.  fresh: share of its variance that is new at each step; the rest
    goes on along the reply, apart for right steps and for wrong ones.
    """
    distance = math.sqrt(2) * NORMAL.inv_cdf(auc)
    return [
        [_said(t, s, distance, fresh, run.seed) for t, s in zip(*rows, strict=True)]
        for rows in zip(groups, inner(groups, run), strict=True)
    ]


def _said(t: Trajectory, truth: Score, distance: float, fresh: float, seed: int) -> Score:
    if truth.missing:
        return truth
    ends, steps = [at for at, _ in truth.steps], []
    noise = {right: step_errors(("imperfect_steps", seed, right), t, ends, fresh) for right in (True, False)}
    for k, (at, value) in enumerate(truth.steps):
        right = value >= 1.0
        z = (distance if right else -distance) / 2 + noise[right][k]
        steps.append((at, 1 / (1 + math.exp(-distance * z))))
    return Score(steps=steps) if steps else Score(None, why="no step was judged")
