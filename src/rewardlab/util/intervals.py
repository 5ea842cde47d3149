"""Student's t confidence interval of a mean."""

from __future__ import annotations

import functools
import math

import numpy as np


def interval(values: np.ndarray, inside: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, lower and upper bound, each (...,), of the two-sided Student t interval of values (..., n).

    inside: the share of such intervals that contain the true mean.

    For n < 2 the bounds are infinite.
    """
    n = values.shape[-1]
    # one value has no spread to estimate
    if n < 2:
        mean = values.mean(-1) if n else np.full(values.shape[:-1], np.nan)
        return mean, np.full_like(mean, -np.inf), np.full_like(mean, np.inf)
    mean = values.mean(-1)
    half = t_quantile(n - 1, inside) * values.std(-1, ddof=1) / math.sqrt(n)
    return mean, mean - half, mean + half


@functools.cache
def t_quantile(freedom: int, inside: float = 0.95) -> float:
    """The t with P(|T| <= t) = inside for an integer number of degrees of freedom, by bisection.

    The search is over the angle atan(t / sqrt(freedom)), which is bounded where t is not.
    """
    low, high = 0.0, math.pi / 2
    # 60 halvings of an interval of length 1.6: below the resolution of a float64
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < inside else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _within(angle: float, freedom: int) -> float:
    """P(|T| <= sqrt(freedom) tan(angle)), as a finite sum (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4)."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = freedom % 2
    term, total = cosine if odd else 1.0, 0.0
    for k in range(2 + odd, freedom + 1, 2):
        total += term
        term *= cosine**2 * (k - 1) / k
    return 2 / math.pi * (angle + sine * total) if odd else sine * total
