"""Operators on rewards: bounds, thresholds, schedules, statistics, orders, constraints. See docs/REWARDS.md."""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any, Literal

from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.rewards.operator import operator
from rewardlab.settings.domain import NonNegativeFloat, Share


def _geometric(rewards: list[float]) -> float:
    """The geometric mean. Raises RewardlabError for a negative reward."""
    if min(rewards) < 0:
        raise RewardlabError(
            f"aggregate: a reward of {min(rewards):g} has no place in a geometric mean; clip(..., low=0) bounds it"
        )
    # the root of the product, by logarithms: a product of hundreds of chances is 0 to a float
    return math.exp(statistics.fmean(map(math.log, rewards))) if min(rewards) > 0 else 0.0


AGGREGATES: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "mean": statistics.fmean,
    "min": min,
    "max": max,
    "last": lambda rewards: rewards[-1],
    "product": math.prod,
    "geometric": _geometric,
}


@operator
def minimum(*values: float) -> float:
    """The least of several rewards."""
    return min(values)


@operator
def maximum(*values: float) -> float:
    """The greatest of several rewards."""
    return max(values)


def _ordered(low: float | None, high: float | None) -> None:
    if low is not None and high is not None and low > high:
        raise RewardlabError(f"clip: low={low:g} is above high={high:g}")


@operator(steps=True, check=_ordered)
def clip(x: float, *, low: float | None = None, high: float | None = None) -> float:
    """The reward clipped to [low, high]; step rewards are clipped one by one."""
    x = x if low is None else max(low, x)
    return x if high is None else min(high, x)


@operator(steps=True)
def threshold(x: float, *, at: float, soft: NonNegativeFloat = 0.0) -> float:
    """1 where the reward is at least `at`, else 0; step rewards one by one.

    soft > 0: sigmoid((x - at) / soft), which is 1/2 at `at`.
    """
    if soft == 0:
        return float(x >= at)
    z = (x - at) / soft
    # exp of a negative number cannot overflow; the sigmoid of z < 0 follows by symmetry
    tail = math.exp(-abs(z))
    return 1 / (1 + tail) if z >= 0 else tail / (1 + tail)


@operator(steps=True)
def signed(x: float) -> float:
    """2 x - 1: a chance from 0 to 1 as a reward from -1 to 1, in which even odds earn nothing; step rewards one by one."""
    return 2 * x - 1


@operator(over="trajectory", steps=True)
def aggregate(rewards: list[float], *, by: Literal["sum", "mean", "min", "max", "last", "product", "geometric"] = "sum") -> float:
    """The step rewards of a rollout, and its outcome, as one number: their sum, mean, min, max, last, product or geometric mean."""
    return AGGREGATES[by](rewards)


@operator(over="weights")
def scheduled(
    rewards: list[float], run: Run | None, *, start: float = 0.0, end: float = 1.0,
    shape: Literal["linear", "cosine", "exponential", "step"] = "linear", since: Share = 0.0, until: Share = 1.0,
) -> list[float]:  # fmt: skip
    """A weight that moves from `start` to `end` while the run's progress moves from `since` to `until`.

    linear, cosine (slow at both ends), exponential (both ends above 0), or step (`start` before `until`, `end` from then on).
    Without a run it is `start`.
    """
    progress = run.progress if run is not None else 0.0
    if not 0 <= since < until:
        raise RewardlabError(f"scheduled: since={since:g} must come before until={until:g}")
    # how far the weight has moved, 0 to 1; clamped, since it rests before `since` and after `until`
    p = min(1.0, max(0.0, (progress - since) / (until - since)))
    if shape == "exponential" and min(start, end) > 0:
        # a geometric path, which needs both ends above 0
        return [start ** (1 - p) * end**p]
    moved = {"linear": p, "cosine": (1 - math.cos(math.pi * p)) / 2, "step": float(p >= 1)}
    if shape not in moved:
        raise RewardlabError(f"scheduled: shape {shape!r} must be linear, cosine, step, or exponential between ends above 0")
    return [start + (end - start) * moved[shape]]


@operator(over="groups", steps=True, relative=lambda within, **_: within == "group")
def normalised(
    groups: list[list[float]],
    memory: dict[str, Any],
    *,
    within: Literal["group", "running", "start"] = "group",
    eps: NonNegativeFloat = 1e-4,
    decay: Share = 1.0,
) -> list[list[float]]:
    """(x - mean) / (std + eps), std unbiased, over the rewards of the group, in which every step reward counts as one.

    within="running": over the rewards of this step and all steps before it; those of k steps ago have the weight decay^k. The
    moments are stored in the run; without a run, only the groups passed in count.
    within="start": over the rewards of the first step in which they vary, from then on the same. In the first step the policy is
    still its reference, so the mean stays what the reference earns: unlike the others, this lets a reward rise with training.
    """
    if within == "group":
        return [_standardised(group, *_moments(group), eps) for group in groups]
    if within == "start":
        count, mean, square = memory.get("start") or _moments([x for group in groups for x in group])
        # rewards that are all the same have no spread to divide by yet
        if square > 0:
            memory["start"] = [count, mean, square]
        return [_standardised(group, count, mean, square, eps) for group in groups]
    # decay shrinks the weight of old rewards; their mean does not change by it
    before = memory.get("count", 0.0) * decay, memory.get("mean", 0.0), memory.get("square", 0.0) * decay
    moments = _merged(before, _moments([x for group in groups for x in group]))
    memory |= dict(zip(("count", "mean", "square"), moments, strict=True))
    return [_standardised(group, *moments, eps) for group in groups]


def _moments(values: list[float]) -> tuple[float, float, float]:
    """Count, mean, and sum of squared distances from the mean."""
    mean = statistics.fmean(values) if values else 0.0
    return float(len(values)), mean, math.fsum((x - mean) * (x - mean) for x in values)


def _merged(a: tuple[float, float, float], b: tuple[float, float, float]) -> tuple[float, float, float]:
    """The moments of two samples together. Chan, Golub & LeVeque 1983"""
    # stable, where E[x^2] - E[x]^2 cancels if the mean is large against the spread
    count, gap = a[0] + b[0], b[1] - a[1]
    if not count:
        return a
    return count, a[1] + gap * b[0] / count, a[2] + b[2] + gap * gap * a[0] * b[0] / count


def _standardised(values: list[float], count: float, mean: float, square: float, eps: float) -> list[float]:
    # max: a single reward has no spread, and gets 0 / eps = 0 instead of 0 / 0
    std = math.sqrt(square / max(1.0, count - 1))
    return [(x - mean) / (std + eps) for x in values]


@operator(over="group")
def lexicographic(*columns: list[float]) -> list[float]:
    """The share of the group's other rollouts that a rollout beats by the first reward, or by the next one where those are equal.

    So no amount of a later reward outweighs an earlier one. Ties count half. The only rollout of a group gets 1/2.
    """
    rows = list(zip(*columns, strict=True))
    if len(rows) == 1:
        return [0.5]
    order = sorted(rows)
    # bisect_left rollouts are below and bisect_right - bisect_left are equal, itself among them:
    # below + (equal - 1) / 2 = (left + right - 1) / 2
    return [(bisect_left(order, row) + bisect_right(order, row) - 1) / 2 / (len(rows) - 1) for row in rows]


@operator(over="group")
def rank(values: list[float]) -> list[float]:
    """The share of the group's other rollouts that a rollout beats, ties counting half. The only rollout of a group gets 1/2."""
    return lexicographic.function(values)


@operator(over="group")
def share(values: list[float]) -> list[float]:
    """The share of each rollout in the group's total reward; 0 if the total is 0. A negative reward raises RewardlabError."""
    if min(values) < 0:
        raise RewardlabError(f"share: a reward of {min(values):g} cannot be shared out; clip(..., low=0) bounds it")
    total = math.fsum(values)
    return [x / total if total else 0.0 for x in values]


@operator(over="group")
def distance_to_best(values: list[float]) -> list[float]:
    """The reward minus the highest reward of the group: 0 for the best rollout, negative for the others."""
    return [x - max(values) for x in values]


@operator(over="weights")
def constrained(
    rewards: list[float],
    costs: list[float],
    memory: dict[str, Any],
    *,
    limit: float,
    lr: NonNegativeFloat = 0.1,
    start: float = 0.0,
) -> list[float | None]:
    """reward - multiplier * cost; the multiplier rises while the mean cost of a step is above `limit`, and falls while it is below.

    multiplier <- max(0, multiplier + lr * (mean cost - limit)), updated before this step is scored: dual ascent on the Lagrangian
    of maximising the reward at a mean cost of at most `limit`. Its constant, multiplier * limit, has no gradient and is left out.
    The multiplier is stored in the run; without a run it is one update away from `start`.  Altman 1999; Ray, Achiam & Amodei 2019
    """
    multiplier = memory.get("multiplier", start)
    # a step without any verdict says nothing about the cost
    if costs:
        multiplier = max(0.0, multiplier + lr * (statistics.fmean(costs) - limit))
    memory["multiplier"] = multiplier
    # `or 0.0` turns -0.0 into 0.0, for the log
    return [None, -multiplier or 0.0]
