"""What pairs of runs say about a claim: effects, interval, gate, guard, verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from . import gate
from .claim import Claim
from .pairs import Outcomes
from .runs import Done, number
from .verdict import AT_A_COST, BROKEN, HOLDS, INCOMPLETE, INSIDE, SANITY, SMALLER, UNDECIDED, UNFIT, verdict
from .workers import Failed

Record = dict[str, Any]


def judge(name: str, claim: Claim, method: Outcomes, baseline: Outcomes) -> Record:
    """What the pairs so far say: effects (None where a run of the pair failed or measured no finite number), their mean with its
    98.4% interval, the checks of the gate, the guard, and the verdict.
    """
    # an effect is positive where it supports the claim, whichever direction that is
    sign = 1.0 if claim.direction == "higher" else -1.0
    references = baseline if claim.versus else method
    effects = [_effect(name, claim, method_run, other_run) for method_run, other_run in zip(method, references, strict=True)]
    effects = [None if e is None or not math.isfinite(e) else sign * e for e in effects]
    measured = [e for e in effects if e is not None]
    result = verdict(measured, claim.margin)
    mine, other = _numbers(method), _numbers(baseline)
    checks, guard = gate.checks(claim, mine, other), gate.guard(claim, mine, other)
    # a failed run may be a bad one: a verdict on the others alone would be biased
    word = _word(claim, result.verdict, checks, guard) if len(measured) == len(effects) else INCOMPLETE
    return {
        "effects": effects, "effect": finite(result.effect), "interval": [finite(result.low), finite(result.high)],
        "inside": INSIDE, "gate": [check.to_json() for check in checks], "guard": guard and guard.to_json(), "verdict": word,
    }  # fmt: skip


def _word(claim: Claim, found: str, checks: list[gate.Check], guard: gate.Check | None) -> str:
    if claim.sanity:
        return {HOLDS: SANITY, SMALLER: SANITY, UNDECIDED: UNDECIDED}.get(found, BROKEN)
    if not all(check.ok for check in checks):
        return UNFIT
    return AT_A_COST if found == HOLDS and guard is not None and not guard.ok else found


def _numbers(outcomes: Outcomes) -> list[Mapping[str, float]]:
    return [outcome.numbers if isinstance(outcome, Done) else {} for outcome in outcomes]


def _effect(name: str, claim: Claim, method_run: Done | Failed, other_run: Done | Failed) -> float | None:
    """The measure of the method's run minus the baseline's, `against`, or 0; None where a run failed."""
    if isinstance(method_run, Failed) or isinstance(other_run, Failed):
        return None
    value = number(method_run.numbers, claim.measure, name)
    if claim.versus:
        return value - number(other_run.numbers, claim.measure, claim.versus)
    return value - (number(method_run.numbers, claim.against, name) if claim.against else 0.0)


def finite(value: float) -> float | None:
    """The value to 7 digits, the precision of float32; None for NaN and infinity, which JSON lacks."""
    return float(f"{value:.7g}") if math.isfinite(value) else None
