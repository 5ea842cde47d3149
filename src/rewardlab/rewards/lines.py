"""Whether a reply names the lines of the code that are wrong."""

from __future__ import annotations

import re

from rewardlab.core import Score, Trajectory
from rewardlab.data.values import list_of
from rewardlab.rewards.reward import reward

_STATED = re.compile(r"^\W{0,4}lines?\W{0,4}:([^\n]{0,400})", re.IGNORECASE | re.MULTILINE)
_NUMBERS = re.compile(r"(?<!\d)(\d{1,6})(?!\d)(?:\s?[-–]\s?(\d{1,6})(?!\d))?")
WIDEST = 1000
"""Lines of a range that count; a longer one is as if it had not been said."""


@reward
def located_lines(trajectory: Trajectory, *, column: str = "lines") -> Score:
    """F1 of the lines that a reply states, as in `Lines: 3, 7-9`, and those of a column of the problem, a list of numbers.

    Where no line is wrong: 1 if none is stated, else 0. The last statement counts. No verdict where the column is no such list.
    """
    listed = list_of(trajectory.problem.meta.get(column))
    if listed is None or not all(isinstance(n, int) and not isinstance(n, bool) for n in listed):
        return Score(None, why=f"the column {column!r} is no list of line numbers")
    wanted, stated = set(listed), stated_lines(trajectory.reply)
    if not wanted or not stated:
        return Score(float(wanted == stated), why=f"{len(stated)} lines stated, {len(wanted)} wrong")
    return Score(2 * len(wanted & stated) / (len(wanted) + len(stated)), why=f"{len(wanted & stated)} of {len(wanted)} lines")


def stated_lines(reply: str) -> set[int]:
    """The numbers after the last `Lines:` of a reply."""
    found = _STATED.findall(reply)
    ranges = [(int(a), int(b or a)) for a, b in _NUMBERS.findall(found[-1])] if found else []
    return {n for a, b in ranges if b - a < WIDEST for n in range(a, b + 1)}
