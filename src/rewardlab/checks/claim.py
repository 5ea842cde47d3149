"""Claims: the expected effect of a method in a world that can show it, fixed before it is run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rewardlab.core import Measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.core_metrics import BESIDE
from rewardlab.rewards.reward import Reward


@dataclass(frozen=True)
class Within:
    """A number of runs that must lie in a range, on average over the runs.  says: what it shows, in words."""

    number: str
    low: float = -math.inf
    high: float = math.inf
    says: str = ""

    def __post_init__(self) -> None:
        if not self.low < self.high or (math.isinf(self.low) and math.isinf(self.high)):
            raise RewardlabError(f"the range of {self.number!r} needs a bound, and low below high, not {self.low} to {self.high}")

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def around(self, low: float, high: float) -> bool | None:
        """Whether the whole interval from low to high lies in the range; False where all of it lies outside, else None."""
        if low in self and high in self:
            return True
        return False if high < self.low or low > self.high else None

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"at most {self.high:g}"
        return f"at least {self.low:g}" if math.isinf(self.high) else f"{self.low:g} to {self.high:g}"


START = Within("before.greedy", 0.2, 0.6, "greedy accuracy, neither hopeless nor nearly perfect")


@dataclass(frozen=True)
class Claim:
    """What a paper says about its method, as a direction and a margin on one world.

    The comparison. versus: the baseline method or stack, which may be the method itself under other settings. task, model: the
    world; model None is the task's own. settings, versus_settings: of method and baseline there. measure: name of the number
    that is compared; direction: "higher" or "lower". reward: what pays both sides there; None: what each has of its own. by: a
    Measure for both sides; None: the method's own. against: without a baseline, the other number of the same run
    ("before.pass@1"); None: the number is compared with 0. steps: of both sides. budget: instead, tokens that all models
    together may generate and score, where the claim is about cost. problems: held out.

    The decision. margin: the smallest effect that counts, in units of the measure; where a standard deviation of the effect between
    seeds is larger, that counts instead.  guard: bounds of a paired difference, method minus baseline, that a method must not pay
    with (`Within("pass@1", low=-0.03)`): the whole interval must lie within.  guard_from: "start", bounds of what the method itself
    changes from before its training: of two sides that collapse, one ends higher.  moved: the paired difference in the number that
    the mechanism moves; where it does not, the method is inert there, which is told beside the verdict.

    The gate, without which nothing is decided. fault: a number of the baseline that shows what the method mends.  judge: a number
    of the method's runs that shows that a learnt judge has learnt.  learns: the number by which the baseline must learn, in the
    range `span`; None: nobody is trained, or the claim is not about learning, and then no side may end below its start.  start: of
    the baseline; None where greedy accuracy says nothing.

    What was done. sanity: it holds by construction.  tried: worlds and rates that were tried before.  finding: what was learnt, in
    one line.  version: counts how often the claim was put; replaces: why the version before was.

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
    reward: Reward | None = None
    by: Measure | None = None
    problems: int = 1000
    steps: int | None = None
    guard: Within | None = None
    guard_from: Literal["baseline", "start"] = "baseline"
    fault: Within | None = None
    moved: Within | None = None
    judge: Within | None = None
    learns: str | None = "pass@1"
    span: tuple[float, float] = (0.0, 1.0)
    start: Within | None = START
    sanity: bool = False
    tried: str = ""
    finding: str = ""
    version: int = 1
    replaces: str = ""

    def __post_init__(self) -> None:
        if self.direction not in ("higher", "lower"):
            raise RewardlabError(f"the direction of a claim is higher or lower, not {self.direction!r}")
        if not self.margin >= 0:
            raise RewardlabError(f"the margin of a claim is the smallest effect that counts, from 0 up, not {self.margin!r}")
        if self.budget and self.steps:
            raise RewardlabError("a claim is about equal updates (steps) or about cost (budget), not both")
        if (self.version > 1) != bool(self.replaces):
            raise RewardlabError("a claim says why it replaces the version before it, if there is one, and only then")
        if not self.span[0] < self.span[1]:
            raise RewardlabError(f"the span of a claim is the lowest and the highest value of {self.learns}, not {self.span}")

    @property
    def beside(self) -> bool:
        """Whether its runs measure what `evals.solving` adds: where something is learnt, or the claim names one of them."""
        bounds = [bound.number for bound in (self.guard, self.fault, self.moved, self.judge) if bound]
        names = {name.removeprefix("before.") for name in (self.measure, self.against or "", *bounds)}
        return self.learns is not None or not names.isdisjoint(BESIDE)


@dataclass(frozen=True)
class Check(Claim):
    """What the mechanism of a method does, as a number of its own: on a frozen policy, after one update, on written pairs.

    The fields of a claim. A check says nothing of how good a policy becomes, so that none has to learn, and none to be able.
    """

    learns: str | None = None
    start: Within | None = None
