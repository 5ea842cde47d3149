"""When a claim holds: paired effects, their Student t interval, and a margin that was fixed beforehand."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PAIRS = 5
ROUNDING = 1e-12  # a margin met exactly must not fail, and a zero not succeed, by the last bit of a difference

HOLDS, FAILS, NOISY = "holds", "does not hold", "too noisy"
INCOMPLETE = "incomplete"  # a run failed, so that there is no verdict


@dataclass(frozen=True)
class Verdict:
    """effect: the mean over pairs, positive where it speaks for the claim.  low, high: its two-sided 95% t interval."""

    effect: float
    low: float
    high: float
    verdict: str


def verdict(effects: Sequence[float], margin: float) -> Verdict:
    """Judge paired effects, positive where they speak for the claim, by the least effect that counts.

    holds: the interval lies above 0, and the mean reaches the margin;  does not hold: the interval lies below the margin;
    too noisy: anything else, and always with fewer than 5 pairs.

    Of claims without any effect at most 2.5% hold, as long as effects scatter evenly to both sides. Where one side's runs
    mostly agree and now and then collapse, five pairs can miss the collapse, and the share is higher.
    """
    values = np.asarray(effects, float)
    mean, low, high = (float(x) for x in interval(values))
    missed = len(values) >= PAIRS and high < margin - ROUNDING
    word = HOLDS if bool(holds(values, margin)) else FAILS if missed else NOISY
    return Verdict(mean, low, high, word)


def holds(effects: np.ndarray, margin: float) -> np.ndarray:
    """(...,) whether effects (..., pairs) make a claim hold."""
    mean, low, _ = interval(effects)
    return (effects.shape[-1] >= PAIRS) & (low > ROUNDING) & (mean >= margin - ROUNDING)


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(...,) mean, and the bounds of its two-sided 95% Student t interval, of values (..., n); unbounded for n < 2."""
    n = values.shape[-1]
    if n < 2:
        mean = values.mean(-1) if n else np.full(values.shape[:-1], np.nan)
        return mean, np.full_like(mean, -np.inf), np.full_like(mean, np.inf)
    mean = values.mean(-1)
    half = t_quantile(n - 1) * values.std(-1, ddof=1) / math.sqrt(n)
    return mean, mean - half, mean + half


@functools.cache
def t_quantile(freedom: int, inside: float = 0.95) -> float:
    """t with P(|T| <= t) = inside, for a whole number of degrees of freedom, by bisection of the angle atan(t / sqrt(freedom))."""
    low, high = 0.0, math.pi / 2
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
