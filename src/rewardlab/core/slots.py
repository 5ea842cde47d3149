"""The slots of a recipe: what each kind of part is given, and what it gives back.

    loss = sum over terms, over units u:  term(u) * weight(u)

A unit of an objective is a token, a row, a group, or the batch. Weights are computed on the whole batch, so cutting it into
micro-batches never changes the gradient; a micro-batch never splits a unit. Rewards have an algebra of their own and live in
`rewards/reward.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from torch import Tensor

from .batch import Batch
from .part import Expression, Part, decorator


class Rollout(Part):
    """(problems, run) -> groups of trajectories. The trait `whole` says that it remembers, or looks across problems."""

    slot = "rollout"


class Select(Part):
    """(group, scores, run) -> the trajectory that is the answer: one of the group, or one made of it."""

    slot = "select"


class Measure(Part):
    """(problems, run) -> {name: number}: how good the policy, or a reward, is on problems never trained on."""

    slot = "measure"


class Environment(Part):
    """What answers back: (state, turn) -> (message, state), and `start(problem, seed)` -> (message or None, state).

    The decorated function is one step; the trait `start` begins an episode, with the same hyperparameters. State is plain
    data: it is copied to branch and saved to resume. A message of None ends the episode, and so does one that is `last`.
    """

    slot = "environment"

    def start(self, problem: Any, seed: int) -> tuple[Any, Any]:
        return self.traits["start"](problem, seed, **self.settings)


class Loop(Part):
    """(recipe, run, ops) -> None: one resumable iteration, for methods that are not rollout-reward-credit-update."""

    slot = "loop"


UNITS = ("token", "row", "group", "batch")


class Weighting(Part):
    """(batch) -> weights of its unit: (B, T) for tokens, (B,) for rows, (G,) for groups."""

    slot = "weighting"

    @property
    def unit(self) -> str:
        return self.traits.get("unit", "token")


class Objective(Part):
    """(outputs, batch, run) -> one loss per unit; objectives add, and scale by numbers.

    Traits: unit; needs: columns of the batch; wants: outputs beyond log-probs ("entropy", "value", "hidden");
    per_token: f(logits (n, V), ids (n,)) -> {name: (n,)}, run inside the chunked head with gradient, found again in
    `outputs.extra[name]`.
    """

    slot = "objective"

    @property
    def unit(self) -> str:
        return self.traits.get("unit", "token")

    @property
    def wants(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(w for leaf in self.leaves() for w in leaf.traits.get("wants", ("logprobs",))))

    @property
    def per_token(self) -> tuple[Callable, ...]:
        return tuple(leaf.traits["per_token"] for leaf in self.leaves() if "per_token" in leaf.traits)

    def terms(self, scale: float = 1.0) -> Iterator[tuple[float, Objective]]:
        yield scale, self

    def leaves(self) -> list[Objective]:
        return [leaf for _, leaf in self.terms()]

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(leaf.unit for leaf in self.leaves()))

    def __add__(self, other: Objective) -> Objective:
        return ObjectiveSum.join(self, other)

    def __rmul__(self, scale: float) -> Objective:
        return ObjectiveScaled(float(scale), self)

    __mul__ = __rmul__


class ObjectiveSum(Expression, Objective):
    symbol, rank = "+", 1

    def terms(self, scale: float = 1.0) -> Iterator[tuple[float, Objective]]:
        for part in self._of:
            yield from part.terms(scale)


class ObjectiveScaled(Expression, Objective):
    symbol, rank = "*", 2

    def terms(self, scale: float = 1.0) -> Iterator[tuple[float, Objective]]:
        yield from self._of[1].terms(scale * self._of[0])


class Credit(Part):
    """(credit (B, T), batch, run) -> credit (B, T). Chains by `>>`, starting from `batch.reward`."""

    slot = "credit"

    def __rshift__(self, other: Credit) -> Credit:
        return Chain.join(self, other)


class Chain(Expression, Credit):
    symbol: ClassVar[str] = ">>"

    def __call__(self, a: Tensor, batch: Batch, run: Any) -> Tensor:
        for part in self.of:
            a = part(a, batch, run)
        return a


rollout = decorator(Rollout)
select = decorator(Select)
measure = decorator(Measure)
loop = decorator(Loop)
environment = decorator(Environment)
objective = decorator(Objective)
weighting = decorator(Weighting)
credit = decorator(Credit)
