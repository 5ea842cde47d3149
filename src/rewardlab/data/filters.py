"""Filters on numbers, lengths and answers of rows.

survivors = staying(rows, first(broken_answers(rows), within(rows, "pass_rate", Bounds.read("0.1:0.9"))))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardlab.errors import RewardlabError

from .drops import Drop, Fates
from .values import MISSING, is_missing, number_of, text_of, value_of

Rows = Sequence[Mapping[str, Any]]
_BOUND = re.compile(r"(-?[\d.]+(?:e[+-]?\d+)?)(%?)", re.I)


@dataclass(frozen=True)
class Bounds:
    """The least and the most, both included; None is no bound.  shares: (low, high) bounds that are quantiles, from 0 to 1."""

    low: float | None = None
    high: float | None = None
    shares: tuple[bool, bool] = (False, False)

    @classmethod
    def read(cls, text: str | Sequence[float | None]) -> Bounds:
        """LOW:HIGH, LOW: or :HIGH, or a pair of numbers, of which one may be None. A bound with a percent sign is a quantile of the
        numbers: `25%:` drops the lowest quarter."""
        if not isinstance(text, str):
            return cls(*_pair(text))
        low, colon, high = text.partition(":")
        if not colon or not text.strip(" :"):
            raise RewardlabError(f"bounds are written LOW:HIGH, LOW: or :HIGH, not {text!r}")
        (least, a), (most, b) = _bound(low, text), _bound(high, text)
        if least is not None and most is not None and a == b and least > most:
            raise RewardlabError(f"in {text!r} the least is above the most")
        return cls(least, most, (a, b))

    def settled(self, numbers: Sequence[float]) -> Bounds:
        """With plain numbers in place of quantiles of these numbers."""
        if not any(self.shares) or not numbers:
            return Bounds(self.low, self.high)
        low, high = (
            float(np.quantile(numbers, end)) if share and end is not None else end
            for end, share in zip((self.low, self.high), self.shares, strict=True)
        )
        return Bounds(low, high)

    def refusal(self, number: float) -> str | None:
        """What is wrong with a number, in words; None for one within the bounds."""
        if self.low is not None and number < self.low:
            return f"{number:g} is below {self.low:g}"
        return f"{number:g} is above {self.high:g}" if self.high is not None and number > self.high else None


def _pair(bounds: Any) -> tuple[float | None, float | None]:
    """The least and the most that a pair of numbers names."""
    wanted = f'bounds are a text "LOW:HIGH", "LOW:" or ":HIGH", or a pair of numbers, such as (0.1, 0.9), not {bounds!r}'
    if not isinstance(bounds, list | tuple) or len(bounds) != 2 or bounds[0] is bounds[1] is None:
        raise RewardlabError(wanted)
    low, high = (None if end is None or isinstance(end, str | bool) else number_of(end) for end in bounds)
    if (low is None) != (bounds[0] is None) or (high is None) != (bounds[1] is None):
        raise RewardlabError(wanted)
    if low is not None and high is not None and low > high:
        raise RewardlabError(f"in {bounds!r} the least is above the most")
    return low, high


def _bound(text: str, whole: str) -> tuple[float | None, bool]:
    if not text.strip():
        return None, False
    found = _BOUND.fullmatch(text.strip())
    number = number_of(found[1]) if found else None
    if found is None or number is None:
        raise RewardlabError(f"in the bounds {whole!r}, {text.strip()!r} is not a number or a percentage")
    if found[2] and not 0 <= number <= 100:
        raise RewardlabError(f"in the bounds {whole!r}, {text.strip()} is not between 0% and 100%")
    return (number / 100, True) if found[2] else (number, False)


def within(rows: Rows, column: str, bounds: Bounds) -> Fates:
    """Rows stay whose number in this column is within the bounds; those without a number go. The reason is the column's name."""
    return _within(rows, column, bounds, number_of, column, "is not a number")


def length_within(rows: Rows, column: str, bounds: Bounds, length: Callable[[str], float] = len) -> Fates:
    """Rows stay whose text in this column has a length within the bounds: in characters, or by another count (of tokens)."""
    return _within(rows, column, bounds, lambda value: length(text_of(value)), f"length of {column}", "has no length")


def broken_answers(rows: Rows, column: str = "answer") -> Fates:
    """Rows stay that have an answer: the column is there, and not null, NaN or empty."""
    fates: Fates = []
    for row in rows:
        value = value_of(row, column)
        what = "there is no column" if value is MISSING else "nothing stands in column"
        fates.append(Drop("no answer", f"{what} {column}") if is_missing(value) else None)
    return fates


def _within(
    rows: Rows, column: str, bounds: Bounds, measure: Callable[[Any], float | None], reason: str, otherwise: str
) -> Fates:  # fmt: skip
    values = [value_of(row, column) for row in rows]
    numbers = [None if value is MISSING or value is None else measure(value) for value in values]
    settled = bounds.settled([number for number in numbers if number is not None])
    fates: Fates = []
    for value, number in zip(values, numbers, strict=True):
        if number is None:
            why = f"there is no column {column}" if value is MISSING else f"{column} {otherwise}: {text_of(value)[:60]!r}"
        else:
            why = f"{reason}: {said}" if (said := settled.refusal(number)) else ""
        fates.append(Drop(reason, why) if why else None)
    return fates
