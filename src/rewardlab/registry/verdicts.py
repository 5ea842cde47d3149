"""The current verdict of a record, for a claim or a check.

A record keeps the word of its day. What a file says of its claim beside its runs changes the word, and needs no new run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

CHECKED = {
    "holds": "works", "smaller": "works less than the margin", "reversed": "opposite", "at a cost": "works at a cost",
    "unfit world": "unfit",
}  # fmt: skip
"""What a check says where a claim says the other."""
CLAIMED = {checked: claimed for claimed, checked in CHECKED.items()}
SANITY, BROKEN, INERT = "sanity", "broken", "inert here"
OPEN = ("undecided", "incomplete", "stopped", "not run", "too noisy", "does not hold")
"""Words that stay as they are, whatever the file says."""


def shown(run: Mapping[str, Any], check: bool, sanity: bool) -> str:
    """The verdict of a recorded run for a claim, or a check, which is by construction or not."""
    word = CLAIMED.get(run["verdict"], run["verdict"])
    if word in OPEN:
        return word
    if sanity:
        return word if word in (SANITY, BROKEN) else _by_construction(run)
    word = _decided(run) if word in (SANITY, BROKEN) else word
    return CHECKED.get(word, word) if check else word


def inert(run: Mapping[str, Any]) -> bool:
    """Whether the mechanism moved nothing in a recorded run. In older records it was a condition of the gate."""
    moved = run.get("moved") or next((c for c in run.get("gate", ()) if c["what"].startswith("the mechanism moves")), None)
    return moved is not None and moved["ok"] is False


def last_of(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The newest run of a record that was not stopped, if there is one: a stopped one does not hide the verdict before it."""
    runs = record["runs"]
    return next((run for run in reversed(runs) if run["verdict"] != "stopped"), runs[-1])


def _by_construction(run: Mapping[str, Any]) -> str:
    """What a run that was once recorded as a claim says as one that is true by construction."""
    low, high = _bounds(run)
    return SANITY if low > 0 else BROKEN if high < 0 or run["verdict"] in ("no effect", "reversed") else "undecided"


def _decided(run: Mapping[str, Any]) -> str:
    """What a run that was once recorded as by construction says as a claim."""
    low, high = _bounds(run)
    if not all(condition["ok"] for condition in run.get("gate", ())):
        return "unfit world"
    if low <= 0:
        return "reversed" if high < 0 else "no effect" if run["verdict"] == BROKEN else "undecided"
    margin, guard = run.get("margin") or run["claim"]["margin"], run.get("guard")
    if run["effect"] < margin:
        return "smaller"
    return "at a cost" if guard and guard["ok"] is False else "holds"


def _bounds(run: Mapping[str, Any]) -> tuple[float, float]:
    """The interval of the effects; without one nothing is above or below 0."""
    low, high = run.get("interval") or run.get("ci95") or (None, None)
    return (-math.inf, math.inf) if low is None or high is None else (low, high)
