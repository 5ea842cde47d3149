"""How well scores rank."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.errors import RewardlabError


def auc_of(scored: Sequence[tuple[float, bool]]) -> float:
    """The chance that a right one has a higher score than a wrong one, ties counting half: the area under the ROC curve.

    NaN unless there are both.
    """
    if not scored:
        return math.nan
    score, right = np.array([s for s, _ in scored]), np.array([ok for _, ok in scored], bool)
    if not np.isfinite(score).all():
        raise RewardlabError("a judge gave a score that is not finite")
    both = int(right.sum()) * int((~right).sum())
    if not both:
        return math.nan
    # ranks, of which equal scores share the mean: the Mann-Whitney statistic
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    ranks = (last - (count - 1) / 2)[place]
    least = right.sum() * (right.sum() + 1) / 2
    return float((ranks[right].sum() - least) / both)
