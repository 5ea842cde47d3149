"""What a method promises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardlab.core import Measure


@dataclass(frozen=True)
class Claim:
    """What a method promises, as its paper says it, fixed before it is run.

    versus: the baseline method or stack, which may be the method itself under other settings.  measure: name of the number
    compared; direction: "higher" or "lower"; margin: the least effect that counts, in units of the measure.  budget: tokens
    that all models together may generate and score, on each side.  against: where there is no baseline, the other number of
    the same run ("before.pass@1"); None: the number itself counts, against 0.  model: None is the task's own.  settings,
    versus_settings: of method and baseline on this world.  by: a Measure for both sides; None: the method's own.  problems:
    held-out ones.
    """

    says: str
    versus: str | None
    task: str
    measure: str
    direction: str
    margin: float
    budget: int | None = None
    against: str | None = None
    model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    versus_settings: Mapping[str, Any] = field(default_factory=dict)
    by: Measure | None = None
    problems: int = 200
