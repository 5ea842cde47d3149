"""Scores, and the algebra of rewards.

A reward sees every group of a step at once and gives each trajectory a Score. Rewards add, multiply, scale and gate:

    correct() + 0.2 * format_ok()          a sum; every named term is kept, unweighted, in `parts`
    correct() * productivity()             a product
    format_ok() >> correct()               a gate: the right side is paid where the left is positive, else the left's value

A value of None means "no verdict" (our own failure). It is never turned into a zero: it spreads through + and *.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from .component import Expression, Part, decorator
from .errors import NotFinite, RewardlabError
from .trajectory import Group, Trajectory


@dataclass(frozen=True)
class Term:
    """One named reward, unweighted: a value for the whole trajectory, and rewards at single token positions."""

    value: float | None
    steps: tuple[tuple[int, float], ...] = ()
    weight: float = 1.0


@dataclass(frozen=True)
class Score:
    """What a trajectory earned: `value` on its last decision, `steps` at their token positions, `parts` by name.

    outcome: whether the value is a reward of its own, so that an outcome of 0 counts as an event; beside step rewards alone a
    value of 0 is none. None: it is one, unless it is 0 beside steps.
    """

    value: float | None
    steps: tuple[tuple[int, float], ...] = ()
    parts: dict[str, Term] = field(default_factory=dict)
    why: str = ""
    outcome: bool | None = None

    @property
    def ends(self) -> bool:
        """Whether there is a reward on the last decision as such."""
        return self.value is not None and (self.outcome if self.outcome is not None else self.value != 0 or not self.steps)

    @property
    def total(self) -> float | None:
        return None if self.value is None else self.value + sum(r for _, r in self.steps)


Scores = list[list[Score]]


class Reward(Part):
    """(groups, run) -> scores, with `+ * >>`, scaling by numbers, and `.named(name)`."""

    slot = "reward"

    def __call__(self, groups: list[Group], run: Any = None) -> Scores:
        raw = _lift(self.function, self.settings, self.traits.get("over", "trajectory"), groups, run)
        return [[_as_score(x, self.name, self.traits.get("steps", False)) for x in row] for row in raw]

    def differentiable(self, x: Any, problem: Any) -> Any:
        """(n,) rewards of decisions x (n, *shape) as a function torch can differentiate; not every reward has one."""
        if "differentiable" not in self.traits:
            raise RewardlabError(f"{self} has no gradient: it judges what is given and cannot say which way is better")
        return self.traits["differentiable"](x, problem, **self.settings)

    def named(self, name: str) -> Reward:
        return Named(self, name)

    def __add__(self, other: Any) -> Reward:
        return Sum.join(self, _reward(other))

    def __mul__(self, other: Any) -> Reward:
        return Scaled(float(other), self) if isinstance(other, int | float) else Product.join(self, _reward(other))

    def __rmul__(self, other: Any) -> Reward:
        return Scaled(float(other), self)

    def __sub__(self, other: Any) -> Reward:
        return self + -1.0 * other

    def __rshift__(self, other: Any) -> Reward:
        return Gate(self, _reward(other))


def _reward(x: Any) -> Reward:
    if not isinstance(x, Reward):
        raise RewardlabError(f"cannot combine a reward with {x!r}: it is not a reward (forgot to call it?)")
    return x


class _Combined(Expression, Reward):
    """Rewards joined by an operator that works score by score."""

    rank = 1

    def __call__(self, groups: list[Group], run: Any = None) -> Scores:
        columns = [part(groups, run) for part in self.of]
        return [[self.combine([c[g][i] for c in columns]) for i in range(len(group))] for g, group in enumerate(groups)]

    def combine(self, scores: list[Score]) -> Score:
        raise NotImplementedError(f"{type(self).__name__} says nowhere how scores are joined")


class Sum(_Combined):
    symbol, rank = "+", 1

    def combine(self, scores: list[Score]) -> Score:
        values = [s.value for s in scores]
        total = None if any(v is None for v in values) else math.fsum(v for v in values if v is not None)
        ends = any(s.ends for s in scores)
        return Score(total, _merge_steps(s.steps for s in scores), _merge_parts(scores), _why(scores), ends)

    def differentiable(self, x: Any, problem: Any) -> Any:
        return sum(part.differentiable(x, problem) for part in self._of)


class Product(_Combined):
    symbol, rank = "*", 2

    def combine(self, scores: list[Score]) -> Score:
        stepped = [s for s in scores if s.steps]
        if len(stepped) > 1:
            raise RewardlabError(f"{self}: at most one factor may reward steps")
        values = [s.value for s in scores]
        if any(v is None for v in values):
            return Score(None, (), _merge_parts(scores), _why(scores))
        steps: tuple[tuple[int, float], ...] = ()
        if stepped:
            factor = math.prod(s.value or 0.0 for s in scores if s is not stepped[0])
            steps = tuple((t, r * factor) for t, r in stepped[0].steps)
        return Score(math.prod(v for v in values if v is not None), steps, _merge_parts(scores), _why(scores))


class Gate(_Combined):
    symbol, rank = ">>", 0

    def combine(self, scores: list[Score]) -> Score:
        gate, paid = scores
        chosen = gate if gate.value is None or gate.value <= 0 else paid
        return replace(chosen, parts=_merge_parts(scores), why=_why(scores))


class Scaled(_Combined):
    symbol, rank = "*", 2

    def combine(self, scores: list[Score]) -> Score:
        by, score = self._of[0], scores[0]
        value = None if score.value is None else by * score.value
        parts = {k: replace(t, weight=by * t.weight) for k, t in score.parts.items()}
        return Score(value, tuple((t, by * r) for t, r in score.steps), parts, score.why, score.outcome)

    def differentiable(self, x: Any, problem: Any) -> Any:
        return self._of[0] * self._of[1].differentiable(x, problem)


class Named(_Combined):
    """A reward whose term carries another name; several terms under it get the name as a prefix."""

    rank = 3

    def __str__(self) -> str:
        return f"{self._bracket(self._of[0])}.named({self._of[1]!r})"

    def combine(self, scores: list[Score]) -> Score:
        name, parts = self._of[1], scores[0].parts
        renamed = {name if len(parts) == 1 else f"{name}.{k}": t for k, t in parts.items()}
        return replace(scores[0], parts=renamed)

    def differentiable(self, x: Any, problem: Any) -> Any:
        return self._of[0].differentiable(x, problem)


def _merge_parts(scores: list[Score]) -> dict[str, Term]:
    parts: dict[str, Term] = {}
    for score in scores:
        for name, term in score.parts.items():
            if name in parts:
                raise RewardlabError(f"two rewards are named {name!r}; tell them apart with .named('...')")
            parts[name] = term
    return parts


def _merge_steps(many: Iterable[tuple[tuple[int, float], ...]]) -> tuple[tuple[int, float], ...]:
    total: dict[int, float] = {}
    for steps in many:
        for t, r in steps:
            total[t] = total.get(t, 0.0) + r
    return tuple(sorted(total.items()))


def _why(scores: list[Score]) -> str:
    return "; ".join(s.why for s in scores if s.why)


def _lift(function: Callable, settings: dict, over: str, groups: list[Group], run: Any) -> list[list[Any]]:
    """Apply a function written for one trajectory, one group, or all groups."""
    positional = [p for p in inspect.signature(function).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    rest = (run,) if len(positional) > 1 else ()
    if over == "groups":
        return function(groups, *rest, **settings)
    if over == "group":
        return [list(function(group, *rest, **settings)) for group in groups]
    return [[function(t, *rest, **settings) for t in group] for group in groups]


def _as_score(x: Any, name: str, stepwise: bool) -> Score:
    if isinstance(x, Score):
        return x if x.parts else replace(x, parts={name: Term(x.value if x.ends else None, x.steps)})
    if stepwise:
        steps = tuple((int(t), float(r)) for t, r in x)
        return Score(0.0, steps, {name: Term(None, steps)})
    value = None if x is None else float(x)
    return Score(value, (), {name: Term(value)})


def check_finite(groups: list[Group], scores: Scores, source: str) -> None:
    """Raise NotFinite, naming term and rollout, if any reward is NaN or infinite."""
    for g, row in enumerate(scores):
        for i, score in enumerate(row):
            terms = {**score.parts, "total": Term(score.value, score.steps)}
            for name, term in terms.items():
                values = [term.value or 0.0, *(r for _, r in term.steps)]
                if not all(math.isfinite(v) for v in values):
                    where: Trajectory = groups[g][i]
                    raise NotFinite(
                        f"reward term {name!r} of {source} is not finite for rollout {i} of group {g} "
                        f"(problem {where.problem.question[:60]!r}, reply {where.reply[:60]!r})"
                    )


reward = decorator(Reward)
"""Make a reward of a function.

over="trajectory" (default): f(trajectory[, run], *, ...) -> float | None | Score
over="group": f(group[, run], *, ...) -> one of these per trajectory;  over="groups": f(groups[, run], *, ...) -> a list of lists
steps=True: each is a list of (token position, reward) instead of one number
differentiable=g: g(x, problem, *, ...) -> the same reward of decisions x (n, *shape) as a tensor (n,), with gradient
"""
