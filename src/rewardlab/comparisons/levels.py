"""Levels and differences as people say them: 61%, 29.8 tokens, 12% shorter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rewardlab.comparisons.words import BASELINE

Record = Mapping[str, Any]
NOTHING = "–"
"""In the place of a number that there is not."""


def shown(value: float | None, outcome: Record) -> str:
    """A level of the outcome of a league's record."""
    if value is None:
        return NOTHING
    unit = f" {outcome['unit']}" if outcome.get("unit") else ""
    if outcome["scale"] == "log":
        return f"{math.exp(value):.3g}{unit}"
    if outcome["scale"] == "share":
        return f"{100 * value:.1f}%"
    return f"{value:,.0f}{unit}" if abs(value) >= 1000 else f"{value:.3g}{unit}"


def plotted_at(value: float | None, outcome: Record) -> float | None:
    """A level as it stands on an axis: in what `shown` writes, since nobody reads logarithms."""
    if value is None:
        return None
    return math.exp(value) if outcome["scale"] == "log" else 100 * value if outcome["scale"] == "share" else value


def axis_of(outcome: Record) -> str:
    """What stands beside that axis."""
    unit = "%" if outcome["scale"] == "share" else outcome.get("unit")
    better = f" ({outcome['better']} is better)" if outcome.get("better") else ""
    return outcome["says"] + (f", {unit}" if unit else "") + better


def level_and_start(row: Record, outcome: Record) -> str:
    """The level of a member in a world; of the baseline also where it began, since nothing else says what training itself does."""
    baseline = row["standing"]["word"] == BASELINE
    start = f" (start {shown(row['start'], outcome)})" if baseline and row["start"] is not None else ""
    return shown(row["mean"], outcome) + start


def change(effect: float | None, outcome: Record) -> str:
    """An oriented difference, of which more is better, in the direction in which the number itself moved."""
    if effect is None:
        return NOTHING
    moved = effect if outcome["better"] == "higher" else -effect
    if outcome["scale"] == "log":
        return f"{100 * (math.exp(moved) - 1):+.0f}%"
    return f"{100 * moved:+.1f} points" if outcome["scale"] == "share" else f"{moved:+.3g}"


def span(low: float | None, high: float | None, outcome: Record) -> str:
    """The interval of an oriented difference, its lower end first."""
    if low is None or high is None:
        return NOTHING
    ends = (low, high) if outcome["better"] == "higher" else (high, low)
    return " to ".join(change(end, outcome).removesuffix(" points") for end in ends)


def percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f}%"


def times(value: float | None, base: float | None) -> str:
    """A cost against the baseline's."""
    return NOTHING if not value or not base else f"{value / base:.2f}x"
