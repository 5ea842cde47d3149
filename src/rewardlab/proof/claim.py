"""Claims: what a method is expected to show, fixed before it is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardlab.core import Measure
from rewardlab.errors import RewardlabError


@dataclass(frozen=True)
class Claim:
    """What a paper says about its method, as a direction and a margin on one task.

    versus: the baseline method or stack, which may be the method itself under other settings.  measure: name of the metric that
    is compared; direction: "higher" or "lower"; margin: the smallest effect that counts, in units of the measure.  budget: tokens
    that all models together may generate and score, on each side.  against: without a baseline, the other metric of the same run
    ("before.pass@1"); None: the metric is compared with 0.  model: None is the task's own.  settings, versus_settings: of method
    and baseline on this task.  by: a Measure for both sides; None: the method's own.  problems: the number of held-out ones.
    steps: training steps of both sides, where the claim is about equal updates instead of equal tokens.

    `says` and `versus` are written as literals, so that `rewardlab list` shows them without importing the file.
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
    steps: int | None = None

    def __post_init__(self) -> None:
        if self.direction not in ("higher", "lower"):
            raise RewardlabError(f"the direction of a claim is higher or lower, not {self.direction!r}")
        if not self.margin >= 0:
            raise RewardlabError(f"the margin of a claim is the smallest effect that counts, from 0 up, not {self.margin!r}")
