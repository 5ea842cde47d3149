"""Operators: functions that make a new reward from other rewards.

    @operator
    def clip(x, *, low=None, high=None): ...       called for one number at a time

    clip(length_penalty(), low=-0.5)               a reward: it prints as written, saves, adds, and keeps the terms of its operands

The function gets numbers only. A rollout for which an operand has no verdict is not passed to it, and gets no verdict.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from rewardlab.core.part import Expression, Part, PartFactory, decorator
from rewardlab.core.score import Score, Scores, Term, check_finite
from rewardlab.core.trajectory import Group
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Constant, Reward, as_reward
from rewardlab.rewards.scores import add, derive, scale
from rewardlab.settings.options import OperatorOptions

Inputs = list[tuple[float, ...]]
"""One tuple for each reward event of a rollout, with one number from each operand. Empty without a verdict."""

CONTEXT = ("run", "memory")
"""Arguments of an operator's function that are not rewards."""


class Operator(Reward):
    """A reward computed by a function from the rewards of its operands."""

    option_type = OperatorOptions
    options: Any

    def __init__(
        self, function: Callable, bound: dict[str, Any] | None = None, options: Any = None, *, operands: tuple[Reward, ...]
    ):
        super().__init__(function, bound, options)
        self.operands = operands

    @property
    def of(self) -> tuple[Part, ...]:
        return (*self.operands, *super().of)

    @property
    def over(self) -> str:
        return self.options.over

    @property
    def label(self) -> str:
        # a weighted operand keeps its terms and their names
        if self.over == "weights" and len(self.operands) == 1:
            return self.operands[0].label
        return f"{self.name}({','.join(x.label for x in self.operands)})"

    def __str__(self) -> str:
        # the text between the brackets of `name(...)`, to go after the operands
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
            # NaN has no order, and one NaN makes the mean of a group NaN: stop here, where the operand can be named
            check_finite(groups, column, str(part))
        # table[g][i]: the scores of rollout i of group g, one from each operand
        table = [[[c[g][i] for c in columns] for i in range(len(group))] for g, group in enumerate(groups)]
        if self.over == "weights":
            weights = self._weights(table, run)
            return [[add([scale(s, w) for s, w in zip(scores, weights, strict=True)]) for scores in group] for group in table]
        rewards = self._apply([[self._inputs(scores) for scores in group] for group in table], run)
        return [[self._score(*row) for row in zip(*group, strict=True)] for group in zip(table, rewards, strict=True)]

    def _inputs(self, scores: list[Score]) -> Inputs:
        """The numbers of one rollout that are passed to the function."""
        if any(s.missing for s in scores):
            return []
        if not any(s.steps for s in scores):
            return [tuple(s.value or 0.0 for s in scores)]
        if len(scores) > 1 or not self.options.steps:
            raise RewardlabError(
                f"{self} wants one number per rollout, but this reward has step rewards: wrap it in aggregate(...)"
            )
        # steps come first and the outcome last, the order in which `_score` takes them apart
        outcome = [(scores[0].value or 0.0,)] if scores[0].has_outcome else []
        return [*((r,) for _, r in scores[0].steps), *outcome]

    def _apply(self, inputs: list[list[Inputs]], run: Any) -> list[list[list[float]]]:
        """The function's result for every event of every rollout."""
        if self.over == "number":
            return [[[self._call(x, run) for x in row] for row in group] for group in inputs]
        if self.over == "trajectory":
            return [[[self._call([[x for (x,) in row]], run)] if row else [] for row in group] for group in inputs]
        # rollouts without a verdict have no events, so they drop out of the group's statistics here
        flat = [[x for row in group for x in row] for group in inputs]
        if self.over == "group":
            results = [self._call(_columns(x, len(self.operands)), run) if x else [] for x in flat]
        else:
            results = self._call([[[row[k] for row in x] for x in flat] for k in range(len(self.operands))], run)
        return [self._split(list(numbers), group) for numbers, group in zip(results, inputs, strict=True)]

    def _split(self, numbers: list[float], group: list[Inputs]) -> list[list[float]]:
        """Split the numbers of a group into those of each rollout."""
        if len(numbers) != (n := sum(map(len, group))):
            raise RewardlabError(f"{self} gave {len(numbers)} numbers for {n} rewards")
        remaining = iter(numbers)
        return [[next(remaining) for _ in row] for row in group]

    def _score(self, scores: list[Score], rewards: list[float]) -> Score:
        if any(s.missing for s in scores):
            return derive(self.label, None, scores)
        if self.over == "trajectory" or not scores[0].steps:
            return derive(self.label, Term(float(rewards[0])), scores)
        # not strict: where there is an outcome, its reward is one more, at the end
        steps = tuple((at, float(r)) for (at, _), r in zip(scores[0].steps, rewards, strict=False))
        return derive(self.label, Term(float(rewards[-1]) if scores[0].has_outcome else None, steps), scores)

    def _weights(self, table: list[list[list[Score]]], run: Any) -> list[float]:
        """The weight of each operand; None from the function means 1. Other weights are logged."""
        totals = [[s.total for s in scores] for group in table for scores in group]
        # the inner filter removes nothing; it tells the type checker that no None is left
        complete = [tuple(x for x in row if x is not None) for row in totals if None not in row]
        weights = self._call(_columns(complete, len(self.operands)), run)
        for part, weight in zip(self.operands, weights, strict=True):
            if weight is not None and run is not None:
                run.log(f"weight/{part.label}", weight)
        return [1.0 if weight is None else float(weight) for weight in weights]

    @functools.cached_property
    def _context(self) -> list[str]:
        return [name for name in inspect.signature(self.function).parameters if name in CONTEXT]

    def _call(self, columns: Iterable[Any], run: Any) -> Any:
        """Call the function with its operands' numbers, and with `run` and `memory` if it has these arguments.

        The memory is a dict of plain data, stored in the run under the operator's formula. Every call within a step starts from
        the memory at the end of the step before, and the last call is stored: scoring a batch twice does not update it twice.
        """
        if "memory" not in self._context or run is None:
            return self.function(*columns, *({"run": run, "memory": {}}[name] for name in self._context), **self.settings)
        key = f"reward.{self}"
        saved = run.memory.get(key, {"step": run.step, "before": {}})
        before = saved["before"] if saved["step"] == run.step else saved["now"]
        # a copy: a second call in this step needs `before` unchanged
        now = dict(before)
        result = self.function(*columns, *({"run": run, "memory": now}[name] for name in self._context), **self.settings)
        run.memory[key] = {"step": run.step, "before": before, "now": now}
        return result


def across_groups(reward: Reward) -> Reward:
    """The reward as it compares over groups and steps: without operators that compare the rollouts of a group with one another.

    The mean of `normalised(x)` is 0 whatever x is, so x itself takes its place; where such an operator has several operands, the
    first one does.
    """
    if isinstance(reward, Operator):
        operands = tuple(map(across_groups, reward.operands))
        if reward.over in ("group", "groups"):
            return operands[0]
        return Operator(reward.function, reward.bound, reward.options, operands=operands)
    if isinstance(reward, Expression):
        return type(reward)(*(across_groups(x) if isinstance(x, Reward) else x for x in reward._of))
    return reward


def _columns(rows: Inputs, width: int) -> list[list[float]]:
    """The numbers of each operand. `width` is the number of operands, because without rows there is nothing to count them by."""
    return [[row[k] for row in rows] for k in range(width)]


class OperatorFactory(PartFactory):
    """The result of `@operator`: call it with rewards, or numbers, and hyperparameters."""

    def operands(self) -> tuple[str, ...]:
        positional = (p for p in inspect.signature(self.function).parameters.values() if p.kind is not p.KEYWORD_ONLY)
        return tuple(p.name for p in positional if p.name not in CONTEXT)

    def __call__(self, *operands: Any, **bound: Any) -> Any:
        rewards = [inspect.signature(self.function).parameters[name] for name in self.operands()]
        any_number = any(p.kind is p.VAR_POSITIONAL for p in rewards)
        if not operands or not (any_number or len(operands) == len(rewards)):
            expected = "at least one reward" if any_number else f"{len(rewards)} reward{'s' * (len(rewards) > 1)}"
            raise RewardlabError(f"{self.function.__name__} takes {expected}, and settings by name; it got {len(operands)} rewards")
        self.check(bound)
        given = tuple(as_reward(x) for x in operands)
        if all(isinstance(x, Constant) for x in given):
            numbers = ", ".join(map(str, given))
            raise RewardlabError(f"{self.function.__name__}({numbers}) pays every rollout the same: give it a reward")
        return Operator(self.function, bound, self.options, operands=given)


operator = decorator(
    Operator,
    OperatorFactory,
    about="""Turn a function into an operator, with one argument for each reward.

over="number" (default): f(x, y, *, ...) -> number, from one number of each reward
over="trajectory": f(xs, *, ...) -> number, from all rewards of one rollout, its steps in order and the outcome last
over="group": f(xs, ys, *, ...) -> numbers, one per rollout of a group, from the numbers of all of them
over="groups": the same for all groups of a step, as lists of lists
over="weights": f(xs, ys, *, ...) -> a weight for each reward (None: unchanged), from the totals of all rollouts of the step
steps=True: with one reward, each step reward is such a number too; otherwise step rewards raise RewardlabError (except for
"weights")

Two more arguments may come last: `run`, which may be None, and, for "groups" and "weights", `memory`: a dict of plain data that
is saved with the run.
""",
)
