"""Sets of points under several objectives, of all of which more is better: dominance, hypervolume, expected utility."""

from __future__ import annotations

import itertools

import numpy as np


def front(points: np.ndarray) -> np.ndarray:
    """The points (n, k) that no other one dominates, each once, in their order: (m, k).

    A point dominates another if it is at least as good in every objective and better in one.
    """
    once = points[sorted(np.unique(points, axis=0, return_index=True)[1])]
    # (n, n) the first at least as good as the second, which no two unlike points are to each other
    at_least = np.all(once[:, None, :] >= once[None, :, :], axis=-1)
    return once[at_least.sum(0) == 1]


def hypervolume(points: np.ndarray, reference: np.ndarray) -> float:
    """The volume between the reference (k,) and the points (n, k) that are better than it in every objective.

    Exact, by slices along the last objective; meant for the few dozen points of a front.
    """
    inside = points[(points > reference).all(1)]
    if not len(inside):
        return 0.0
    if points.shape[1] == 1:
        return float(inside.max() - reference[0])
    inside = inside[np.argsort(-inside[:, -1], kind="stable")]
    # between the i-th and the next lower value, the first i points reach that high
    floors = [*inside[1:, -1], reference[-1]]
    thick = [float(top - floor) for top, floor in zip(inside[:, -1], floors, strict=True)]
    return sum(t * hypervolume(inside[: i + 1, :-1], reference[:-1]) for i, t in enumerate(thick) if t > 0)


def simplex(objectives: int, steps: int) -> np.ndarray:
    """All weights (n, objectives) that are multiples of 1 / steps and sum to 1 (Das & Dennis 1998), the first objective's first."""
    counts = [row for row in itertools.product(range(steps, -1, -1), repeat=objectives) if sum(row) == steps]
    return np.array(counts, float) / steps


def expected_utility(points: np.ndarray, weights: np.ndarray) -> float:
    """The mean over the weights (w, k) of the best weighted sum among the points (n, k): what a user of unknown weights gets."""
    return float((weights @ points.T).max(1).mean())
