"""How strong a preference is by several scorers, and what becomes of a pair by it.

    d_m = r_m(chosen) - r_m(rejected);    strength mu = mean over m of d_m,    its spread = standard deviation over m

A pair with a strength far below 0 is probably labelled wrong, and one near 0 is ambiguous. Pairs are kept, flipped (the rejected
reply becomes the chosen one), softened (kept with a label that is less than certain) or dropped.

The strength is that of Wang et al. 2024, arXiv:2401.06080, equation 4; agreement of two scorers, as in Liu et al. 2025,
arXiv:2507.01352.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from rewardlab.errors import RewardlabError

Fate = Literal["kept", "flipped", "softened", "dropped"]
FATES: tuple[Fate, ...] = ("kept", "flipped", "softened", "dropped")
SIDES = ("chosen", "rejected")
OF_PAIR = ("gap", "margin", "strength")
"""Columns of numbers that change their sign where the two replies change places."""
OF_REPLIES = "qualities"
"""A column with one entry for each reply, the chosen one first."""


class Strength(NamedTuple):
    """The mean of r(chosen) - r(rejected) over scorers, and the standard deviation over them (divided by their number)."""

    mean: float
    std: float


def strengths(gaps: np.ndarray) -> list[Strength]:
    """The strength of each pair, from (M, n) differences of the scores of n pairs by M scorers."""
    if gaps.ndim != 2 or not len(gaps):
        raise RewardlabError(f"strengths need (scorers, pairs) differences of at least one scorer, not shape {gaps.shape}")
    if not np.isfinite(gaps).all():
        scorer, pair = np.argwhere(~np.isfinite(gaps))[0]
        raise RewardlabError(f"scorer {scorer + 1} gave pair {pair + 1} a score that is not finite")
    return [Strength(float(mean), float(std)) for mean, std in zip(gaps.mean(0), gaps.std(0), strict=True)]


def weakest(means: Sequence[float], share: float) -> set[int]:
    """The places of the pairs with the lowest strengths, so large a share of them (rounded down); earlier ones first at ties."""
    # rounded first: 0.29 * 100 is 28.999999999999996
    count = math.floor(round(share * len(means), 9))
    return set(sorted(range(len(means)), key=lambda i: means[i])[:count])


def by_strength(means: Sequence[float], flip: float, soften: bool) -> list[Fate]:
    """Flipped: the share `flip` of the pairs with the lowest strengths, but none that is above 0. Softened, if `soften`: what else
    is below 0."""
    lowest = weakest(means, flip)

    def fate(i: int) -> Fate:
        if means[i] >= 0:
            return "kept"
        return "flipped" if i in lowest else "softened" if soften else "kept"

    return [fate(i) for i in range(len(means))]


def by_agreement(gaps: np.ndarray) -> list[Fate]:
    """From (M, n) differences: kept where all M scorers prefer the chosen reply, flipped where all prefer the other, else
    dropped. A scorer that scores both replies alike agrees with neither."""
    low, high = gaps.min(axis=0).tolist(), gaps.max(axis=0).tolist()
    return ["kept" if least > 0 else "flipped" if most < 0 else "dropped" for least, most in zip(low, high, strict=True)]


def flipped(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with its two replies in each other's place, and with them all columns named after either (chosen_score); a column of
    numbers about the pair changes its sign."""
    found = {_other(name): value for name, value in row.items()}
    for name in OF_PAIR:
        if isinstance(value := found.get(name), int | float) and not isinstance(value, bool):
            found[name] = -value
    if isinstance(both := found.get(OF_REPLIES), list | tuple) and len(both) == len(SIDES):
        found[OF_REPLIES] = list(reversed(both))
    return found


def _other(name: str) -> str:
    for side, other in (SIDES, SIDES[::-1]):
        if name == side or name.startswith(f"{side}_"):
            return other + name.removeprefix(side)
    return name


def shares(fates: Sequence[Fate]) -> dict[str, float]:
    """How large a share of the pairs each fate has; those that none has are left out."""
    counts = Counter(fates)
    return {fate: counts[fate] / len(fates) for fate in FATES if counts[fate]}
