"""The result of a finished run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardlab.core import Run


@dataclass(frozen=True)
class Result:
    """A finished run: its folder, its summary, and the live models (none where another engine trained).

    It may be given wherever a run's folder may. A pickle holds folder and summary: the models are in the folder.
    """

    out: Path
    summary: dict[str, Any]
    run: Run | None = None

    def __repr__(self) -> str:
        before, after = (self.summary.get(name) or {} for name in ("before", "after"))
        # the first number of an evaluation is the one that leads
        measured = f", held-out {next(iter(after))} {_first(before):.3f} -> {_first(after):.3f}" if before and after else ""
        return f"Result({str(self.out)!r}, {self.summary.get('method')}: {self.summary.get('steps')} steps{measured})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Result, (self.out, self.summary)


def _first(measured: Mapping[str, Any]) -> float:
    return next(iter(measured.values()))
