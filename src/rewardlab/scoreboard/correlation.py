"""Rank statistics of two columns of numbers, (n,) each; NaN where one of them does not vary."""

from __future__ import annotations

import math

import numpy as np


def ranks(x: np.ndarray) -> np.ndarray:
    """From 1; equal numbers share the mean of their ranks."""
    _, which, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[which]


def pearson(x: np.ndarray, y: np.ndarray) -> float:
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(x, y)[0, 1])


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    return pearson(ranks(x), ranks(y))


def kendall(x: np.ndarray, y: np.ndarray) -> float:
    """tau-b: pairs in the same order minus pairs in the opposite one, over the geometric mean of the pairs untied in either."""
    i, j = np.triu_indices(len(x), 1)
    dx, dy = np.sign(x[i] - x[j]), np.sign(y[i] - y[j])
    untied = math.sqrt(float((dx != 0).sum()) * float((dy != 0).sum()))
    return float((dx * dy).sum()) / untied if untied else math.nan


def auc(scores: np.ndarray, right: np.ndarray) -> float:
    """The chance that a right one (1) scores above a wrong one (0), ties counting half."""
    n = float(right.sum())
    wrong = len(right) - n
    if not n or not wrong:
        return math.nan
    return float((ranks(scores)[right > 0].sum() - n * (n + 1) / 2) / (n * wrong))
