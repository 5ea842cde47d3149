"""OperatorFactory: functions of rewards that are rewards again.

    @operator
    def clip(x, *, low=None, high=None): ...       number by number

    clip(length_penalty(), low=-0.5)               a reward: it prints as this, saves, adds, and keeps every term

A function is shown numbers alone: a rollout that misses a verdict on any of its rewards gets none, and is left out before.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from rewardlab.core.part import Part, PartFactory
from rewardlab.core.score import Score, Scores, added, check_finite, scaled, shaped
from rewardlab.core.trajectory import Group
from rewardlab.errors import RewardlabError

from .reward import Reward, as_reward

Row = list[tuple[float, ...]]
"""What one rollout earned: for each of its events a number from each operand. Empty without a verdict."""

GIVEN = ("run", "memory")
"""Arguments of an operator's function that stand for no reward."""


class Operator(Reward):
    """A function of what its operands pay, with hyperparameters."""

    def __init__(self, function: Callable, given: dict[str, Any] | None = None, *, operands: tuple[Reward, ...], **traits: Any):
        super().__init__(function, given, **traits)
        self.operands = operands

    @property
    def of(self) -> tuple[Part, ...]:
        return (*self.operands, *super().of)

    @property
    def over(self) -> str:
        return self.traits.get("over", "number")

    @property
    def label(self) -> str:
        if self.over == "weights" and len(self.operands) == 1:
            return self.operands[0].label
        return f"{self.name}({','.join(x.label for x in self.operands)})"

    def __str__(self) -> str:
        settings = super().__str__()[len(self.name) + 1 : -1]
        return f"{self.name}({', '.join([*map(str, self.operands), *filter(None, [settings])])})"

    __repr__ = __str__

    def _identity(self) -> tuple[Any, Any]:
        return super()._identity(), self.operands

    def to_json(self) -> dict[str, Any]:
        return super().to_json() | {"of": [x.to_json() for x in self.operands]}

    def __call__(self, groups: list[Group], run: Any = None) -> Scores:
        columns = [part(groups, run) for part in self.operands]
        for part, column in zip(self.operands, columns, strict=True):
            # neither an order nor a mean makes sense of NaN
            check_finite(groups, column, str(part))
        table = [[[c[g][i] for c in columns] for i in range(len(group))] for g, group in enumerate(groups)]
        if self.over == "weights":
            weights = self._weights(table, run)
            return [[added([scaled(s, w) for s, w in zip(of, weights, strict=True)]) for of in group] for group in table]
        paid = self._paid([[self._events(of) for of in group] for group in table], run)
        return [[self._score(*both) for both in zip(*group, strict=True)] for group in zip(table, paid, strict=True)]

    def _events(self, of: list[Score]) -> Row:
        if any(s.value is None for s in of):
            return []
        if not any(s.steps for s in of):
            return [tuple(s.value or 0.0 for s in of)]
        if len(of) > 1 or not self.traits.get("steps", False):
            raise RewardlabError(
                f"{self} wants one number for a rollout, and here steps are rewarded: give it aggregate(...) of them"
            )
        return [*((r,) for _, r in sorted(of[0].steps)), *([(of[0].value or 0.0,)] if of[0].ends else [])]

    def _paid(self, rows: list[list[Row]], run: Any) -> list[list[list[float]]]:
        """What is paid for every event of every rollout."""
        if self.over == "number":
            return [[[self._call(x, run) for x in row] for row in group] for group in rows]
        if self.over == "trajectory":
            return [[[self._call([[x for (x,) in row]], run)] if row else [] for row in group] for group in rows]
        flat = [[x for row in group for x in row] for group in rows]
        if self.over == "group":
            found = [self._call(_columns(x, len(self.operands)), run) if x else [] for x in flat]
        else:
            found = self._call([[[row[k] for row in x] for x in flat] for k in range(len(self.operands))], run)
        return [self._dealt(list(numbers), group) for numbers, group in zip(found, rows, strict=True)]

    def _dealt(self, numbers: list[float], group: list[Row]) -> list[list[float]]:
        if len(numbers) != (n := sum(map(len, group))):
            raise RewardlabError(f"{self} gave {len(numbers)} numbers for {n} rewards")
        rest = iter(numbers)
        return [[next(rest) for _ in row] for row in group]

    def _score(self, of: list[Score], paid: list[float]) -> Score:
        if any(s.value is None for s in of):
            return shaped(self.label, Score(None), of)
        if self.over == "trajectory" or not of[0].steps:
            return shaped(self.label, Score(float(paid[0]), outcome=True), of)
        steps = tuple((t, float(r)) for (t, _), r in zip(sorted(of[0].steps), paid, strict=False))
        ends = of[0].ends
        return shaped(self.label, Score(float(paid[-1]) if ends else 0.0, steps, outcome=ends), of)

    def _weights(self, table: list[list[list[Score]]], run: Any) -> list[float]:
        """The weight of each operand. What is not left as it is, is logged."""
        totals = [[s.total for s in of] for group in table for of in group]
        known = [tuple(x for x in row if x is not None) for row in totals if None not in row]
        found = self._call(_columns(known, len(self.operands)), run)
        for part, weight in zip(self.operands, found, strict=True):
            if weight is not None and run is not None:
                run.log(f"weight/{part.label}", weight)
        return [1.0 if weight is None else float(weight) for weight in found]

    @functools.cached_property
    def _wanted(self) -> list[str]:
        return [name for name in inspect.signature(self.function).parameters if name in GIVEN]

    def _call(self, columns: Iterable[Any], run: Any) -> Any:
        """The function on what its operands paid, with the run and a memory of its own where it asks for them.

        What it keeps in `memory` is plain data of the run, under the operator's formula. Every call in a step starts from what
        the steps before left, and the last one counts: scoring twice, or evaluating in between, moves nothing.
        """
        if "memory" not in self._wanted or run is None:
            return self.function(*columns, *({"run": run, "memory": {}}[name] for name in self._wanted), **self.settings)
        place = f"reward.{self}"
        kept = run.memory.get(place, {"step": run.step, "before": {}})
        before = kept["before"] if kept["step"] == run.step else kept["now"]
        now = dict(before)
        found = self.function(*columns, *({"run": run, "memory": now}[name] for name in self._wanted), **self.settings)
        run.memory[place] = {"step": run.step, "before": before, "now": now}
        return found


def _columns(rows: Row, width: int) -> list[list[float]]:
    """The numbers of each operand; `width` empty lists where there is no row."""
    return [[row[k] for row in rows] for k in range(width)]


class OperatorFactory(PartFactory):
    """What `@operator` leaves in place of a function: call it with rewards, or numbers, and hyperparameters."""

    def __call__(self, *operands: Any, **given: Any) -> Any:
        positional = [p for p in inspect.signature(self.function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
        wanted = [p for p in positional if p.name not in GIVEN]
        many = any(p.kind is p.VAR_POSITIONAL for p in wanted)
        if not operands or not (many or len(operands) == len(wanted)):
            said = "at least one reward" if many else f"{len(wanted)} reward{'s' * (len(wanted) > 1)}"
            raise RewardlabError(f"{self.function.__name__} is made of {said} and settings by name, not of {len(operands)} rewards")
        traits = self.traits | {"operands": tuple(as_reward(x) for x in operands)}
        return PartFactory(self.function, self.make, traits)(**given)


def operator(function: Callable | None = None, **traits: Any) -> Any:
    """Make an operator of a function, with one argument for each reward.

    over="number" (default): f(x, y, *, ...) -> number, from one number of each reward
    over="trajectory": f(xs, *, ...) -> number, from all rewards of one rollout, its steps in order and the outcome last
    over="group": f(xs, ys, *, ...) -> numbers, from those of the rollouts of one group
    over="groups": the same for all groups of a step, as lists of lists
    over="weights": f(xs, ys, *, ...) -> a weight for each reward (None: as it is), from what all rollouts of the step earned
    steps=True: of one reward, every step reward is such a number too; else rewards of steps are refused (by all but "weights")

    Two more arguments may come last: `run`, None where there is none, and, for "groups" and "weights", `memory`: a dict that is
    saved with the run, plain data.
    """
    return OperatorFactory(function, Operator, traits) if function else lambda f: OperatorFactory(f, Operator, traits)
