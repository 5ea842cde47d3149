"""Verdicts on claims: paired effects, up to four looks, and a margin fixed beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rewardlab.util.intervals import interval

PAIRS = 5  # the least for a verdict: with fewer, a t interval is too wide and too sensitive to one run
LOOKS = (PAIRS, 8, 12, 20)
"""Numbers of pairs after which a claim is looked at; it is decided at the first look that is clear."""
INSIDE = 0.984
"""The coverage of the interval at each look: four looks together then err as often as one look with a 95% interval."""
ROUNDING = 1e-12  # a margin met exactly must not fail, nor a zero pass, by the rounding of a difference

HOLDS, SMALLER, NO_EFFECT, REVERSED, UNDECIDED = "holds", "smaller", "no effect", "reversed", "undecided"
AT_A_COST = "at a cost"  # it holds, but what was to be guarded became worse
UNFIT = "unfit world"  # the gate failed: nothing is said about the method
SANITY = "sanity"  # it holds by construction
BROKEN = "broken"  # what holds by construction did not hold
INCOMPLETE = "incomplete"  # a run failed, so that there is no verdict
STOPPED = "stopped"  # by hand or by a signal, before it was decided
NOT_RUN = "not run"

WORDS = {
    HOLDS: "the interval of the paired effects lies above 0, and their mean reaches the margin",
    AT_A_COST: "the same, but what the claim guards (mostly accuracy) became worse than its bound, or the method ended below its "
    "own start: it loses less than its baseline, and gains nothing",
    SMALLER: "the interval lies above 0 and below the margin",
    NO_EFFECT: "the interval lies within plus or minus the margin",
    REVERSED: "the interval lies below 0",
    UNDECIDED: f"{LOOKS[-1]} pairs did not tell, of the effect or of what is guarded",
    UNFIT: "the baseline does not learn there or ends below its start, the fault is absent, or a judge is at chance: nothing is "
    "said about the method",
    SANITY: "it holds by construction (the best of n beats one sample): run and shown, but counted apart",
    BROKEN: "what should hold by construction did not: a bug of ours",
    INCOMPLETE: "a run failed",
    STOPPED: "it was stopped before its pairs could tell",
    NOT_RUN: "there is no recorded run",
}
"""Every verdict, and what it means."""


@dataclass(frozen=True)
class Verdict:
    """effect: the mean over pairs, positive where it supports the claim.  low, high: its two-sided t interval at one look."""

    effect: float
    low: float
    high: float
    verdict: str


def verdict(effects: Sequence[float], margin: float) -> Verdict:
    """The verdict on paired effects (positive where they support the claim), given the smallest effect that counts.

    Undecided with fewer than 5 pairs. Where one side's runs mostly agree and occasionally collapse, five pairs can miss the
    collapse: the error rates of `decided` are for symmetric distributions.
    """
    values = np.asarray(effects, float)
    mean, low, high = (float(x) for x in interval(values, INSIDE))
    return Verdict(mean, low, high, str(words(values, margin)))


def words(effects: np.ndarray, margin: float) -> np.ndarray:
    """(...,) the verdict at one look on effects (..., pairs). Batched, so that its error rates can be simulated."""
    mean, low, high = interval(effects, INSIDE)
    enough = effects.shape[-1] >= PAIRS
    above, below = enough & (low > ROUNDING), enough & (high < -ROUNDING)
    within = enough & (low > -margin - ROUNDING) & (high < margin + ROUNDING) & (margin > 0)
    # in this order: an interval above 0 may also lie within the margin, and is then smaller
    cases = {
        HOLDS: above & (mean >= margin - ROUNDING),
        SMALLER: above & (high < margin - ROUNDING),
        REVERSED: below,
        # above 0, with a mean short of the margin that the interval still reaches, is not decided
        NO_EFFECT: within & ~above,
    }
    return np.select(list(cases.values()), list(cases), UNDECIDED)


def decided(effects: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """(verdict, pairs used), each (...,), of effects (..., 20) looked at in turn: the first clear look counts."""
    found = np.full(effects.shape[:-1], UNDECIDED, dtype=object)
    used = np.full(effects.shape[:-1], LOOKS[-1])
    for pairs in LOOKS:
        now = words(effects[..., :pairs], margin)
        new = (found == UNDECIDED) & (now != UNDECIDED)
        found[new], used[new] = now[new], pairs
    return found, used


def holds(effects: np.ndarray, margin: float) -> np.ndarray:
    """(...,) whether effects (..., pairs), looked at once, lie above 0 by their 95% interval with a mean of the margin or more."""
    mean, low, _ = interval(effects)
    return (effects.shape[-1] >= PAIRS) & (low > ROUNDING) & (mean >= margin - ROUNDING)
