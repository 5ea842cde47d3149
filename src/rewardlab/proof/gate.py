"""The gate: whether a world can tell anything about a claim. Where it fails, there is no verdict on the method."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .claim import Claim, Within

Numbers = Mapping[str, float]

SPREADS = 3.0
"""How many standard deviations, between seeds, the baseline must learn by."""
INSIDE_SPAN = (0.15, 0.85)
"""Where in the range of its number the baseline must end: elsewhere there is no room to differ."""
SLACK = 2.0
"""Standard errors by which a side may end below its start by chance."""


@dataclass(frozen=True)
class Check:
    """One condition of the gate.  value: what was measured (None: nothing was); needs: what it should have been, in words."""

    what: str
    value: float | None
    needs: str
    ok: bool

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def checks(claim: Claim, method: Sequence[Numbers], baseline: Sequence[Numbers]) -> list[Check]:
    """The conditions of a claim's gate on the runs of both sides, seed by seed. Without a baseline the method's own runs count."""
    reference = baseline or method
    found = list(_learning(claim, method, reference)) if claim.learns else []
    if claim.fault:
        found.append(_bounded("the fault is there", claim.fault, _column(reference, claim.fault.number)))
    if claim.judge:
        found.append(_bounded("the judge has learnt", claim.judge, _column(method, claim.judge.number)))
    if claim.moved:
        found.append(_bounded("the mechanism moves its number", claim.moved, paired(claim.moved.number, method, baseline)))
    return found


def paired(name: str, method: Sequence[Numbers], baseline: Sequence[Numbers]) -> np.ndarray:
    """A number of the method's runs, minus the baseline's with the same seed where there is one."""
    mine = _column(method, name)
    return mine - _column(baseline, name) if baseline else mine


def guard(claim: Claim, method: Sequence[Numbers], baseline: Sequence[Numbers]) -> Check | None:
    """Whether what the claim guards is as good as the baseline's, or as at the method's own start, on average over pairs."""
    if claim.guard is None:
        return None
    name = claim.guard.number
    if claim.guard_from == "start":
        return _bounded("the guard, from its own start", claim.guard, _change(method, name))
    return _bounded("the guard", claim.guard, paired(name, method, baseline))


def _learning(claim: Claim, method: Sequence[Numbers], reference: Sequence[Numbers]) -> Iterator[Check]:
    name = claim.learns or ""
    before, after = (_column(reference, key) for key in (f"before.{name}", name))
    gain = after - before
    # the spread between seeds; a single run has none, and may not pass for that
    spread = float(np.nanstd(gain, ddof=1)) if np.isfinite(gain).sum() > 1 else math.inf
    yield Check(
        f"the baseline learns ({name} rises)", _known(gain), f"at least {SPREADS:g} standard deviations ({SPREADS * spread:.3g})",
        _mean(gain) > 0 and _mean(gain) >= SPREADS * spread,
    )  # fmt: skip
    low, high = (claim.span[0] + share * (claim.span[1] - claim.span[0]) for share in INSIDE_SPAN)
    ends = Within(name, low, high)
    yield Check(f"the baseline ends with room to differ ({name})", _known(after), str(ends), _mean(after) in ends)
    # the baseline does not, as it learns
    change = _change(method, name)
    error = float(np.nanstd(change, ddof=1)) / math.sqrt(len(change)) if np.isfinite(change).sum() > 1 else 0.0
    yield Check(f"the method does not end below its start ({name})", _known(change), "at least 0", _mean(change) >= -SLACK * error)
    if claim.start and np.isfinite(_column(reference, claim.start.number)).any():
        yield _bounded("the start leaves something to learn", claim.start, _column(reference, claim.start.number))


def _change(runs: Sequence[Numbers], name: str) -> np.ndarray:
    """By how much a number of each run rose from before its training."""
    return _column(runs, name) - _column(runs, f"before.{name}")


def _bounded(what: str, bound: Within, values: np.ndarray) -> Check:
    # a number that was never measured fails: NaN is in no range
    return Check(f"{what}: {bound.says or bound.number}", _known(values), str(bound), _mean(values) in bound)


def _column(runs: Sequence[Numbers], name: str) -> np.ndarray:
    return np.array([run.get(name, math.nan) for run in runs], float)


def _mean(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else math.nan


def _known(values: np.ndarray) -> float | None:
    """The mean as JSON can hold it."""
    mean = _mean(values)
    return mean if math.isfinite(mean) else None
