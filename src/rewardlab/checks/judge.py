"""From pairs of runs to a judgement of a claim: effects, interval, gate, guard, verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Claim
from rewardlab.checks.gate import Condition, conditions, kept_up, moved
from rewardlab.checks.gate import guard as guarded
from rewardlab.checks.pairs import Outcomes
from rewardlab.checks.runs import Done, number
from rewardlab.checks.verdict import AT_A_COST, BROKEN, HOLDS, INCOMPLETE, INSIDE, SANITY, SMALLER, UNDECIDED, UNFIT, verdict
from rewardlab.checks.workers import Failed
from rewardlab.registry.verdicts import CHECKED

Record = dict[str, Any]


def judge(name: str, claim: Claim, method: Outcomes, baseline: Outcomes) -> Record:
    """What the pairs so far say: effects (None where a run of the pair failed or measured no finite number), their mean with its
    98.4% interval, their standard deviation and the margin that counts, the conditions of the gate, the guard, whether the method
    kept what it could do and moved its own number, and the verdict.
    """
    # an effect is positive where it supports the claim, whichever direction that is
    sign = 1.0 if claim.direction == "higher" else -1.0
    references = baseline if claim.versus else method
    effects = [_effect(name, claim, method_run, other_run) for method_run, other_run in zip(method, references, strict=True)]
    effects = [None if e is None or not math.isfinite(e) else sign * e for e in effects]
    measured = [e for e in effects if e is not None]
    counts = margin_of(claim, measured)
    result = verdict(measured, counts)
    mine, other = _numbers(method), _numbers(baseline)
    gate, guard = conditions(claim, mine, other), guarded(claim, mine, other)
    kept, movement = kept_up(claim, mine), moved(claim, mine, other)
    # a failed run may be a bad one: a verdict on the others alone would be biased
    word = word_of(claim, result.verdict, gate, guard, kept) if len(measured) == len(effects) else INCOMPLETE
    return {
        "effects": effects, "effect": finite(result.effect), "interval": [finite(result.low), finite(result.high)],
        "inside": INSIDE, "sd": finite(spread(measured)), "margin": finite(counts), "gate": [c.to_json() for c in gate],
        "guard": guard and guard.to_json(), "kept": kept and kept.to_json(), "moved": movement and movement.to_json(),
        "verdict": word,
    }  # fmt: skip


def margin_of(claim: Claim, effects: Sequence[float]) -> float:
    """The smallest effect that counts: the claim's margin, and never less than a standard deviation of the effect between seeds."""
    sd = spread(effects)
    return max(claim.margin, sd) if math.isfinite(sd) else claim.margin


def spread(effects: Sequence[float]) -> float:
    """The standard deviation of the effect between seeds; NaN with fewer than two."""
    return float(np.std(effects, ddof=1)) if len(effects) > 1 else math.nan


def word_of(claim: Claim, found: str, gate: Sequence[Condition], guard: Condition | None, kept: Condition | None) -> str:
    """The verdict, given what the effects say."""
    if claim.sanity:
        return {HOLDS: SANITY, SMALLER: SANITY, UNDECIDED: UNDECIDED}.get(found, BROKEN)
    if not all(condition.ok for condition in gate):
        found = UNFIT
    elif found == HOLDS:
        # what holds while the method loses what it could do is paid for
        beside = [condition.ok for condition in (guard, kept) if condition]
        found = AT_A_COST if False in beside else UNDECIDED if None in beside else HOLDS
    return CHECKED.get(found, found) if isinstance(claim, Check) else found


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
