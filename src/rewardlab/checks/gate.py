"""The gate: whether a world is informative about a claim. Where it fails, there is no verdict on the method. Where it fails, there
is no verdict on the method.

It asks about the world and the baseline, never about what the method did there: a method that collapses is worse than its
baseline, and one whose mechanism moved nothing is inert there, whatever the effect. Both are told beside the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Claim, Within
from rewardlab.checks.verdict import INSIDE
from rewardlab.util.intervals import interval

Numbers = Mapping[str, float]

CLEAR = 4.0
"""Standard errors of its mean that the baseline must learn by."""
INSIDE_SPAN = (0.15, 0.85)
"""Where in the range of its number the baseline must end: elsewhere there is no room to differ."""
SLACK = 2.0
"""Standard errors by which a side may end below its start by chance."""
ACCURACY = "pass@1"


@dataclass(frozen=True)
class Condition:
    """One condition.  value: the mean that was measured (None: nothing was); needs: what it should have been, in words.

    ok: whether it is met; None: the interval of a paired difference lies across the bound, so that more pairs are needed.
    """

    what: str
    value: float | None
    needs: str
    ok: bool | None
    interval: tuple[float, float] | None = None

    def to_json(self) -> dict[str, Any]:
        plain = asdict(self)
        return plain if self.interval else {k: v for k, v in plain.items() if k != "interval"}


def conditions(claim: Claim, method: Sequence[Numbers], baseline: Sequence[Numbers]) -> list[Condition]:
    """The conditions of a claim's gate on the runs, seed by seed. Without a baseline the method's own runs count."""
    reference = baseline or method
    found = list(_learning(claim, reference))
    if claim.fault:
        found.append(_bounded("the fault is there", claim.fault, _column(reference, claim.fault.number)))
    if claim.judge:
        found.append(_bounded("the judge has learnt", claim.judge, _column(method, claim.judge.number)))
    return found


def moved(claim: Claim, method: Sequence[Numbers], baseline: Sequence[Numbers]) -> Condition | None:
    """Whether the mechanism moves its own number. Measured after the treatment, and so no condition of a verdict."""
    if claim.moved is None:
        return None
    return _bounded("the mechanism moves its number", claim.moved, paired(claim.moved.number, method, baseline))


def kept_up(claim: Claim, method: Sequence[Numbers]) -> Condition | None:
    """Whether the method ends where it started or above; None where nothing was measured before and after."""
    name = outcome(claim, method)
    return _not_below("the method", name, method) if name else None


def guard(claim: Claim, method: Sequence[Numbers], baseline: Sequence[Numbers]) -> Condition | None:
    """Whether what the claim guards is as good as the baseline's, or as at the method's own start: by the whole interval."""
    if claim.guard is None:
        return None
    from_start = claim.guard_from == "start"
    values = change(claim.guard.number, method) if from_start else paired(claim.guard.number, method, baseline)
    mean, low, high = (float(x) for x in interval(values, INSIDE))
    # a number that is missing in a run decides nothing, and is not there for more pairs to find
    ok = False if math.isnan(mean) else claim.guard.around(low, high)
    ends = (low, high) if math.isfinite(low) and math.isfinite(high) else None
    return Condition(f"the guard: {claim.guard.says or claim.guard.number}", _known(values), f"{claim.guard}, all of it", ok, ends)


def change(name: str, runs: Sequence[Numbers]) -> np.ndarray:
    """By how much a number of each run rose from before its training."""
    return _column(runs, name) - _column(runs, f"before.{name}")


def paired(name: str, method: Sequence[Numbers], baseline: Sequence[Numbers]) -> np.ndarray:
    """A number of the method's runs, minus the baseline's with the same seed where there is one."""
    mine = _column(method, name)
    return mine - _column(baseline, name) if baseline else mine


def outcome(claim: Claim, runs: Sequence[Numbers]) -> str | None:
    """The number that a side must not lose: what the claim says is learnt; else of accuracy, the guard and the measure, the first
    that runs measured before and after. A measure that is to be lower, and a guard from above, may rise in training. A check, which
    is about the mechanism's own number, has none.
    """
    guarded = claim.guard.number if claim.guard and math.isfinite(claim.guard.low) else None
    measured = claim.measure if claim.direction == "higher" else None
    # the number that a claim about learning names must be there: where it is not, the gate says so
    if claim.learns:
        return claim.learns
    names = () if isinstance(claim, Check) else (ACCURACY, guarded, measured)
    return next((name for name in names if name and any({name, f"before.{name}"} <= run.keys() for run in runs)), None)


def _learning(claim: Claim, reference: Sequence[Numbers]) -> Iterator[Condition]:
    """What a world must give where something is trained. Only the first of it needs a claim about learning."""
    if claim.learns:
        gain = _column(reference, claim.learns) - _column(reference, f"before.{claim.learns}")
        error, mean = _error(gain), _mean(gain)
        needs = f"at least {CLEAR:g} standard errors ({CLEAR * error:.3g})"
        yield Condition(f"the baseline learns ({claim.learns} rises)", _known(gain), needs, mean > 0 and mean >= CLEAR * error)
    name = outcome(claim, reference)
    # of any other number the range is not known, unless the claim says it
    if name and (name in (claim.learns, ACCURACY) or claim.span != (0.0, 1.0)):
        low, high = (claim.span[0] + share * (claim.span[1] - claim.span[0]) for share in INSIDE_SPAN)
        ends = Within(name, low, high)
        after = _column(reference, name)
        yield Condition(f"the baseline ends with room to differ ({name})", _known(after), str(ends), _mean(after) in ends)
    # where its fall is the fault, that is what the method mends
    if name and not claim.learns and (claim.fault is None or claim.fault.number != name):
        yield _not_below("the baseline", name, reference)
    if claim.start and np.isfinite(_column(reference, claim.start.number)).any():
        yield _bounded("the start leaves something to learn", claim.start, _column(reference, claim.start.number))


def _not_below(side: str, name: str, runs: Sequence[Numbers]) -> Condition:
    rise = change(name, runs)
    error = _error(rise)
    # a single run has no spread, by which its fall could be chance
    ok = _mean(rise) >= -SLACK * (error if math.isfinite(error) else 0.0)
    return Condition(f"{side} does not end below its start ({name})", _known(rise), "at least 0", ok)


def _bounded(what: str, bound: Within, values: np.ndarray) -> Condition:
    # a number that was never measured fails: NaN is in no range
    return Condition(f"{what}: {bound.says or bound.number}", _known(values), str(bound), _mean(values) in bound)


def _column(runs: Sequence[Numbers], name: str) -> np.ndarray:
    return np.array([run.get(name, math.nan) for run in runs], float)


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _error(values: np.ndarray) -> float:
    """The standard error of the mean; infinite for a single run, which may not pass for one without spread."""
    finite = values[np.isfinite(values)]
    return float(finite.std(ddof=1)) / math.sqrt(len(finite)) if len(finite) > 1 else math.inf


def _known(values: np.ndarray) -> float | None:
    """The mean as JSON can hold it."""
    mean = _mean(values)
    return mean if math.isfinite(mean) else None
