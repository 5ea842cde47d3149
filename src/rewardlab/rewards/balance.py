"""Several rewards at once, each with a weight that follows how much it needs one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from rewardlab.errors import RewardlabError
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Constant, Reward, Scaled, Sum

Column = Sequence[float]


@operator(over="weights")
def balanced(*rewards: list[float], risk: tuple[float, ...] = ()) -> list[float]:
    """A sum of rewards whose weights are computed anew in each step, and have the mean 1:

    w_k proportional to  weakness_k * risk_k / (1 + sum over the others j of max(0, corr(r_k, r_j)))

    weakness_k: how far the mean reward of the step's rollouts is below the best of them, so that what is earned throughout has no
    weight.  risk: one number for each reward, 1 for each if left out.  The correlation is over the step's rollouts: two rewards
    that always agree weigh as much as one.  For rewards on one scale: `balanced(normalised(a, within="start"), ...)`.
    """
    if risk and (len(risk) != len(rewards) or min(risk) < 0 or not any(risk)):
        raise RewardlabError(f"balanced: risk has a number from 0 up for each of the {len(rewards)} rewards, one above 0: {risk}")
    importance = [_weakness(column) * r for column, r in zip(rewards, risk or [1.0] * len(rewards), strict=True)]
    raw = [x / (1 + shared) for x, shared in zip(importance, _agreement(rewards), strict=True)]
    # where every reward is earned throughout none is weak, and there is nothing to weigh them by
    return [len(raw) * x / sum(raw) for x in raw] if sum(raw) > 0 else [1.0] * len(rewards)


def _weakness(column: Column) -> float:
    return max(column) - statistics.fmean(column) if column else 0.0


def _agreement(columns: Sequence[Column]) -> list[float]:
    """For each column the sum of its positive correlations with the others; one that does not vary has none."""
    table = np.array(columns, float)  # (K, N)
    if table.size == 0:
        return [0.0] * len(columns)
    table = table - table.mean(1, keepdims=True)
    length = np.linalg.norm(table, axis=1, keepdims=True)
    unit = np.divide(table, length, out=np.zeros_like(table), where=length > 1e-12)
    correlations = (unit @ unit.T).clip(min=0.0)
    return (correlations.sum(1) - correlations.diagonal()).tolist()


def summands(reward: Reward) -> list[tuple[float, Reward]]:
    """The rewards that a sum adds up, each with its weight, which is positive: of `-0.5 * a`, 0.5 and `-a`. No numbers."""
    if isinstance(reward, Sum):
        return [pair for x in reward._of for pair in summands(x)]
    if isinstance(reward, Scaled):
        by, inner = reward._of
        return [(abs(by) * weight, x if by > 0 else -x) for weight, x in summands(inner) if by]
    return [] if isinstance(reward, Constant) else [(1.0, reward)]
