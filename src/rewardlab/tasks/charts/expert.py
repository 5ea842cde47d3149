"""An expert on charts: a small model that was fitted to charts, and says which values decided a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RIDGE, ROUNDS = 20.0, 12
"""Weight decay of the coefficients, and Newton steps; a few suffice."""


class Expert(NamedTuple):
    """Logistic regression. mean, scale: of each value in the charts that it was fitted to."""

    mean: np.ndarray
    scale: np.ndarray
    coefficients: np.ndarray
    bias: float

    def shares(self, values: Sequence[float]) -> np.ndarray:
        """How much each value adds to the log-odds of a high risk."""
        return (np.asarray(values, float) - self.mean) / self.scale * self.coefficients

    def predicts(self, values: Sequence[float]) -> bool:
        return bool(self.shares(values).sum() + self.bias > 0)

    def salient(self, values: Sequence[float], k: int) -> list[int]:
        """The k values that move its prediction most, the most important first; of equals the first."""
        return np.argsort(-np.abs(self.shares(values)), kind="stable")[:k].tolist()


def fit(charts: Sequence[Sequence[float]], high: Sequence[bool]) -> Expert:
    """The regression of the labels on the charts, by Newton's method."""
    x, y = np.asarray(charts, float), np.asarray(high, float)
    mean, scale = x.mean(0), x.std(0) + 1e-9
    z = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    penalty = np.diag([RIDGE] * x.shape[1] + [0.0])
    w = np.zeros(z.shape[1])
    for _ in range(ROUNDS):
        p = 1 / (1 + np.exp(-np.clip(z @ w, -30, 30)))
        hessian = (z * (p * (1 - p) + 1e-6)[:, None]).T @ z + penalty
        w = w - np.linalg.solve(hessian, z.T @ (p - y) + penalty @ w)
    return Expert(mean, scale, w[:-1], float(w[-1]))
