"""Verdicts on claims: paired effects, their Student t interval, and a margin that was fixed beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewardlab.util.intervals import interval

PAIRS = 5  # the least for a verdict: with fewer, a t interval is too wide and too sensitive to one run
ROUNDING = 1e-12  # a margin met exactly must not fail, nor a zero pass, by the rounding of a difference

HOLDS, FAILS, NOISY = "holds", "does not hold", "too noisy"
INCOMPLETE = "incomplete"  # a run failed, so that there is no verdict


@dataclass(frozen=True)
class Verdict:
    """effect: the mean over pairs, positive where it supports the claim.  low, high: its two-sided 95% t interval."""

    effect: float
    low: float
    high: float
    verdict: str


def verdict(effects: Sequence[float], margin: float) -> Verdict:
    """The verdict on paired effects (positive where they support the claim), given the smallest effect that counts.

    holds: the interval lies above 0, and the mean reaches the margin;  does not hold: the interval lies below the margin;
    too noisy: anything else, and always with fewer than 5 pairs.

    Of claims without any effect at most 2.5% hold if effects are distributed symmetrically. Where one side's runs
    mostly agree and occasionally collapse, five pairs can miss the collapse, and the share is higher.
    """
    values = np.asarray(effects, float)
    mean, low, high = (float(x) for x in interval(values))
    # even the upper bound is below the smallest effect that counts
    fails = len(values) >= PAIRS and high < margin - ROUNDING
    word = HOLDS if bool(holds(values, margin)) else FAILS if fails else NOISY
    return Verdict(mean, low, high, word)


def holds(effects: np.ndarray, margin: float) -> np.ndarray:
    """(...,) whether effects (..., pairs) make a claim hold. Batched, so that its error rate can be simulated."""
    mean, low, _ = interval(effects)
    return (effects.shape[-1] >= PAIRS) & (low > ROUNDING) & (mean >= margin - ROUNDING)
