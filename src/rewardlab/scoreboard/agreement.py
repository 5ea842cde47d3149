"""Agreement of two columns of marks: Cohen's kappa, and which marks are about the same thing."""

from __future__ import annotations

import math

import numpy as np


def kappa(a: np.ndarray, b: np.ndarray) -> float:
    """Cohen's kappa of two raters' marks (n,); NaN where chance alone agrees always, and without marks."""
    if not len(a):
        return math.nan
    by_chance = sum(float((a == x).mean() * (b == x).mean()) for x in np.unique(np.concatenate((a, b))))
    return math.nan if by_chance == 1.0 else (float((a == b).mean()) - by_chance) / (1 - by_chance)


def matched(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places in a and in b, (m,) each, of equal keys.

    Keys stand several times in a resample: the first place of a key in a goes with its first in b, the second with the second. A
    place without a partner is left out.
    """
    known = np.unique(np.concatenate((a, b)))
    one, other = (np.searchsorted(known, keys) * (len(a) + len(b) + 1) + _rank(keys) for keys in (a, b))
    _, i, j = np.intersect1d(one, other, assume_unique=True, return_indices=True)
    return i, j


def _rank(keys: np.ndarray) -> np.ndarray:
    """How many equal keys stand before each, (n,)."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    rank = np.empty(len(keys), int)
    rank[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return rank
