"""The frontier of a comparison: two measures, every method a curve over its knob, and Pareto dominance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardlab.checks.runs import Done
from rewardlab.comparisons.arms import Arm
from rewardlab.comparisons.comparison import Outcomes, Record, mean_interval
from rewardlab.comparisons.plan import Plan
from rewardlab.errors import unknown

HIGHER, LOWER = "higher", "lower"


class Axis(NamedTuple):
    """A measure, and whether more or less of it is better."""

    name: str
    better: str

    @classmethod
    def read(cls, text: str, better: str) -> Axis:
        """`length`, in which `better` is better, or `length:higher`."""
        name, _, said = text.rpartition(":")
        return cls(name, said) if said in (HIGHER, LOWER) and name else cls(text, better)

    def gain(self, value: float) -> float:
        return value if self.better == HIGHER else -value


def axes(plan: Plan) -> tuple[Axis, Axis]:
    """What is drawn to the right, less of which is better, and upwards, more of which is: by default what is compared.

    Unless they are written "NAME:higher" or "NAME:lower". A NAME of training's log, such as length, is its mean late in training.
    """
    return Axis.read(plan.x, LOWER), Axis.read(plan.y or plan.measure, HIGHER)


def names_of(name: str, arm: Arm) -> list[str]:
    """The names under which an arm may measure a number: `length` is what it measures, or else what training logged late."""
    return [arm.measured_by(known) for known in (name, f"train.{name}")]


def frontier(plan: Plan, outcomes: Outcomes) -> Record | None:
    """The axes, and the point of every arm: its means over seeds, and whether it is dominated.

    Dominated: another arm is at least as good on both axes, and better on one. Arms that measure nothing on an axis have no place
    there, and dominate nobody. None for a plan without an x axis.
    """
    if not plan.x:
        return None
    x, y = axes(plan)
    for axis in (x, y):
        if not any(_number(done, axis, arm) is not None for arm in plan.arms for done in outcomes[arm.name]):
            raise unknown(
                "measure of these runs", axis.name, {name for runs in outcomes.values() for d in runs for name in d.numbers}
            )
    points = [_point(arm, x, y, outcomes[arm.name]) for arm in plan.arms]
    gains = [_gains(point, x, y) for point in points]
    for point, own in zip(points, gains, strict=True):
        point["dominated"] = None if own is None else any(_beats(other, own) for other in gains if other is not None)
    return {"x": x._asdict(), "y": y._asdict(), "points": points}


def _point(arm: Arm, x: Axis, y: Axis, runs: Sequence[Done]) -> Record:
    both = [(_number(done, x, arm), _number(done, y, arm)) for done in runs]
    # a run counts on both axes or on none: their means are then over the same seeds
    known: list[Any] = [pair for pair in both if None not in pair]
    # the runs that count, with the intervals of what they measured
    counted = [done for done, pair in zip(runs, both, strict=True) if None not in pair]
    found = {}
    for i, (side, axis) in enumerate(zip("xy", (x, y), strict=True)):
        values = [pair[i] for pair in known]
        spreads = [next((done.spread[name] for name in names_of(axis.name, arm) if name in done.spread), None) for done in counted]
        found[side] = mean_interval(values, axis.name, spreads) | {"values": values}
    return {"method": arm.name, "of": arm.of or arm.name, "knob": arm.knob, "at": arm.at, **found}


def _number(done: Done, axis: Axis, arm: Arm) -> float | None:
    return next((done.numbers[name] for name in names_of(axis.name, arm) if done.numbers.get(name) is not None), None)


def _gains(point: Record, x: Axis, y: Axis) -> tuple[float, float] | None:
    at, height = point["x"]["mean"], point["y"]["mean"]
    return None if at is None or height is None else (x.gain(at), y.gain(height))


def _beats(other: tuple[float, float], own: tuple[float, float]) -> bool:
    return all(a >= b for a, b in zip(other, own, strict=True)) and other != own
