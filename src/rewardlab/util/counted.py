"""Logged numbers that count something, so that those of several processes, or of several calls, add up."""

from __future__ import annotations

from typing import Any


class Counted(float):
    """A count. Of any other number, what processes log of their parts of the work is averaged."""


def count(run: Any, name: str, value: float) -> None:
    """Add to what this step has counted so far under the name."""
    run.metrics[name] = Counted(run.metrics.get(name, 0.0) + value)
