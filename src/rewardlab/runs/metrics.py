"""Read metrics.jsonl: one line per step."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics.jsonl; a last line that a kill cut short is skipped."""
    file = folder / "metrics.jsonl"
    if not file.exists():
        return []
    lines = file.read_text(encoding="utf-8").splitlines()
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as e:
            # a bad line before the last was not cut short by a kill: something else damaged the file
            if number < len(lines):
                raise RewardlabError(f"{file}, line {number}: not JSON ({e.msg})") from e
    return rows


def finite(value: Any) -> float:
    """The value as a float, or NaN if it is not a finite number."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    return number if math.isfinite(number) else math.nan


def best_step(values: Mapping[int, Any]) -> int | None:
    """The step whose evaluation is the best, by the leading measure at each: the highest; of equal ones the earliest after step 0.

    Step 0 is the best only where it is above all others: a new head scores all replies alike, and a tie with it does not say that
    training was for nothing. The model of the best step is the one in `best/`. A measure that is no number is passed over; None
    where there is no other.
    """
    known = {step: number for step, value in values.items() if not math.isnan(number := finite(value))}
    return max(known, key=lambda step: (known[step], step > 0, -step), default=None)


AT = "step.json"
"""In the folder of the best model: of which step it is."""


def step_of(model: Path) -> int | None:
    """The step of a model that a run has kept as its best; None where an older version wrote it, or it is damaged."""
    try:
        return int(json.loads((model / AT).read_text("utf-8"))["step"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def must_be_finite(name: str) -> bool:
    """Whether a metric is a loss or the norm of a gradient, which break a run where they are not finite."""
    last = name.rpartition("/")[2]
    return last in ("loss", "grad_norm") or last.endswith(("_loss", "_grad_norm"))


def plain(value: Any, digits: int = 7) -> float | None:
    """The value rounded for a page, or None if it is not a finite number."""
    number = finite(value)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None
