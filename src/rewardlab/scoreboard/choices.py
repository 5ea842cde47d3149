"""One reply chosen among several: by scores, by how many comparisons it wins, or by a vote of those with the same answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from rewardlab.scoreboard.items import Item, Verdict


def points(item: Item, verdict: Verdict) -> np.ndarray:
    """A number for each reply (n,), higher is better: its score, or how many of the item's comparisons it wins (a tie is half,
    however sure the rater is of the others).

    -inf for one without a verdict.
    """
    n = len(item.replies)
    if verdict.orders:
        won = np.full(n, -math.inf)
        for i, j in item.pairs:
            if (x := verdict.prefers(i, j)) is not None:
                share = 0.5 if x == 0.5 else float(x > 0.5)
                won[i], won[j] = max(won[i], 0.0) + share, max(won[j], 0.0) + 1.0 - share
        return won
    return np.array([-math.inf if k >= len(verdict.scores) or (s := verdict.scores[k]) is None else s for k in range(n)], float)


def chosen(points: np.ndarray) -> int | None:
    """The first of those with the highest number; None where nothing was said of any."""
    return None if not len(points) or np.isneginf(points).all() else int(points.argmax())


def expected_best(points: np.ndarray, worth: Sequence[float], k: int) -> float:
    """The worth of the best by points among k of n, on average over all choices of k; equal ones share their chance.

    Replies without a verdict are chosen last; where all k are such, the worth is 0.
    """
    values, place, count = np.unique(points, return_inverse=True, return_counts=True)
    upto = np.cumsum(count)
    share = _share_of_choices(len(points), k)
    chance = share[upto] - share[upto - count]
    mean = np.bincount(place, np.asarray(worth, float)) / count
    return float(np.where(np.isneginf(values), 0.0, chance * mean).sum())


@cache
def _share_of_choices(n: int, k: int) -> np.ndarray:
    """Of the choices of k among n, the share that lies within the first m, for m of 0 to n (n + 1,)."""
    return np.array([math.comb(m, k) / math.comb(n, k) for m in range(n + 1)])


def voted(weights: np.ndarray, answers: Sequence[str | None]) -> str | None:
    """The answer with the largest sum of weights, the first of equal ones; None where none has a weight."""
    sums: dict[str, float] = {}
    for answer, weight in zip(answers, weights, strict=True):
        if answer is not None and np.isfinite(weight):
            sums[answer] = sums.get(answer, 0.0) + float(weight)
    return max(sums, key=sums.__getitem__) if sums else None
