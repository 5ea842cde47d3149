"""What symptoms are looked for in, the curves of a run, and what they are told as."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rewardlab.report.divergence import trend
from rewardlab.runs.metrics import finite

Row = dict[str, Any]

SHORTEST = 8  # steps below which nothing is said of a tendency
SURE = 2.0  # standard errors of a slope that count as a tendency


class Finding(NamedTuple):
    """Something wrong.  text: what the log shows, with its numbers and steps.  remedy: what to try."""

    name: str
    text: str
    remedy: str


class Curves:
    """The metrics of a run as arrays, without what is not finite."""

    def __init__(self, rows: list[Row]):
        self.rows = rows

    def __contains__(self, name: str) -> bool:
        return len(self[name][0]) > 0

    def __getitem__(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of a metric."""
        known = [(row["step"], value) for row in self.rows if math.isfinite(value := finite(row.get(name)))]
        table = np.array(known, float).reshape(-1, 2)
        return table[:, 0], table[:, 1]

    def ends(self, name: str) -> tuple[float, float] | None:
        """The means of the first and of the last quarter; None for fewer than SHORTEST steps."""
        values = self[name][1]
        if len(values) < SHORTEST:
            return None
        quarter = len(values) // 4
        return float(values[:quarter].mean()), float(values[-quarter:].mean())

    def late(self, name: str) -> float | None:
        """The mean of the last quarter."""
        values = self[name][1]
        return float(values[-max(1, len(values) // 4) :].mean()) if len(values) else None

    def progress(self, since: float = -math.inf) -> Progress | None:
        """How the truth, or where none is logged the reward, went from a step on; None for fewer than SHORTEST steps."""
        for name, words in (("truth", "the truth"), ("reward", "the reward")):
            steps, values = self[name]
            values = values[steps >= since]
            if len(values) >= SHORTEST:
                quarter = len(values) // 4
                slope = float(trend(values, len(values))[0])
                return Progress(words, float(values[:quarter].mean()), float(values[-quarter:].mean()), slope)
        return None


class Progress(NamedTuple):
    """What training is for: its name in a sentence, its level early and late, and its slope in standard errors."""

    words: str
    early: float
    late: float
    slope: float

    @property
    def rises(self) -> bool:
        # nothing can rise from the ceiling
        return self.slope > SURE or self.late > 0.95

    def __str__(self) -> str:
        return f"{self.words} {'falls' if self.slope < -SURE else 'does not rise'} ({self.early:.3g} → {self.late:.3g})"
