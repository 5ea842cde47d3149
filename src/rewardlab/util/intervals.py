"""Student's t confidence interval of a mean."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

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


def with_bounds(name: str, values: np.ndarray) -> dict[str, float]:
    """The mean of values (n,) by name, and its bounds as NAME.low and NAME.high where several values have an interval."""
    mean, low, high = (float(x) for x in interval(values))
    return {name: mean} | ({f"{name}.low": low, f"{name}.high": high} if len(values) > 1 else {})


def p_value(values: np.ndarray) -> float:
    """The two-sided p value of Student's t test that the mean of values (n,) is 0; 1 for fewer than two, and for zeros alone."""
    n = len(values)
    if n < 2 or not np.any(values):
        return 1.0
    spread = float(values.std(ddof=1)) / math.sqrt(n)
    return 1.0 - _within(math.atan(abs(float(values.mean())) / (spread * math.sqrt(n - 1))) if spread else math.pi / 2, n - 1)


def holm(values: Sequence[float]) -> list[float]:
    """p values adjusted for their number (Holm 1979): any set of those at or below 5% holds a false one in at most 5% of cases."""
    order, adjusted, highest = sorted(range(len(values)), key=lambda i: values[i]), [1.0] * len(values), 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, values[i] * (len(values) - rank)))
        adjusted[i] = highest
    return adjusted


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
