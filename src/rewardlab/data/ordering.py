"""Curricula: orders and stages by difficulty.

easy_first     by difficulty, easy ones first (Bengio et al. 2009, "Curriculum learning")
bands          stages from easy to hard, each in random order
weights        how near a pass rate is to a target, by a Gaussian: problems that are solved half of the time teach the most
sample         an order by weight, in which heavy rows come early
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from rewardlab.errors import RewardlabError


def easy_first(difficulty: Sequence[float], seed: int = 0) -> list[int]:
    """Indices by rising difficulty, in random order among equals."""
    indices = list(range(len(difficulty)))
    random.Random(f"curriculum {seed}").shuffle(indices)
    return sorted(indices, key=lambda i: difficulty[i])


def bands(difficulty: Sequence[float], count: int | None = None, cuts: Sequence[float] = ()) -> list[int]:
    """The stage of each row, from 1 up: `count` stages of (nearly) equal size, or those between `cuts`; a cut begins a stage.

    Rows of equal difficulty are in one stage, so stages by size may differ, and be fewer where many are equal.
    """
    if (count is None) == (not cuts) or list(cuts) != sorted(set(cuts)) or (count is not None and count < 1):
        raise RewardlabError("stages need either their number, from 1 up, or rising cuts between them")
    if count is not None:
        ranked = sorted(difficulty)
        # equals share the middle of their places
        middles = {x: (bisect_left(ranked, x) + bisect_right(ranked, x)) / 2 for x in ranked}
        stages = [int(count * middles[x] / len(ranked)) for x in difficulty]
    else:
        stages = [bisect_right(cuts, x) for x in difficulty]
    # without stages that no row is in
    used = {stage: i for i, stage in enumerate(sorted(set(stages)), 1)}
    return [used[stage] for stage in stages]


def weights(pass_rates: Sequence[float], target: float = 0.5, width: float = 0.2) -> list[float]:
    """exp(-(p - target)^2 / (2 width^2)) for each pass rate p."""
    if not (math.isfinite(width) and width > 0):
        raise RewardlabError(f"width must be a number above 0, not {width}")
    # no power: Python refuses one that is too large, where a product becomes infinite, and its weight 0
    distances = [(p - target) / width for p in pass_rates]
    return [math.exp(-distance * distance / 2) for distance in distances]


def sample(weights: Sequence[float], rows: int | None = None, seed: int = 0) -> list[int]:
    """Indices of `rows` rows (None: all), sampled one by one without replacement, with chances in proportion to the weights.

    By the smallest of exponential waiting times (Efraimidis and Spirakis 2006). Rows of weight 0 come last, in random order.
    """
    rng = random.Random(f"draw {seed}")
    times = [(rng.expovariate(1.0) / w if w > 0 else math.inf, rng.random()) for w in weights]
    return sorted(range(len(weights)), key=lambda i: times[i])[:rows]
