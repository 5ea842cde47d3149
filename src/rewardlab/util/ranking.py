"""Quality of a ranking by scores."""

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


def kendall_tau(a: Sequence[float], b: Sequence[float]) -> float:
    """How far two scores of the same things rank them alike: 1 in the same order, -1 in the opposite one, 0 if unrelated.

    Of equal scores the first has the lower rank, in both. NaN for fewer than two things.
    """
    if len(a) < 2:
        return math.nan
    # stable, so that ties are broken by place
    ranks = [np.argsort(np.argsort(np.asarray(x, float), kind="stable")) for x in (a, b)]
    first, second = (np.sign(np.subtract.outer(rank, rank)) for rank in ranks)
    return float((first * second).sum() / (len(a) * (len(a) - 1)))
