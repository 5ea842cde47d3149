"""Correlation of step rewards with the true values of steps; nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, Score, measure
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward


@measure
def step_agreement(
    problems: Sequence[Problem], run: Run, *, truth: Reward, rewards: dict[str, Reward], rollout: Rollout
) -> dict[str, float]:
    """agreement.X: the correlation, over the steps of all replies, of the step reward X with `truth`.

    Steps count that `truth` and all rewards speak of. NaN where one of the two is constant.  n: steps.
    """
    groups = rollout(list(problems), run)
    said = {name: _steps(reward(groups, run)) for name, reward in {**rewards, "": truth}.items()}
    shared = sorted(set.intersection(*(set(table) for table in said.values())))
    if not shared:
        raise RewardlabError(f"step_agreement: {truth} and the rewards {', '.join(rewards)} speak of no step in common")
    true = [said[""][at] for at in shared]
    return {f"agreement.{name}": _correlation([said[name][at] for at in shared], true) for name in rewards} | {
        "n": float(len(shared))
    }


def _steps(scores: list[list[Score]]) -> dict[tuple[int, int, int], float]:
    return {(g, i, at): paid for g, row in enumerate(scores) for i, s in enumerate(row) for at, paid in s.steps}


def _correlation(x: list[float], y: list[float]) -> float:
    return float(np.corrcoef(x, y)[0, 1]) if np.ptp(x) and np.ptp(y) else math.nan
