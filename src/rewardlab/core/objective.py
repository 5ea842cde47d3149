"""Objectives: one loss per unit, and the weights that add them up.

    loss = sum over terms, over units u:  term(u) * weight(u)

The weights are computed on the whole batch, so cutting it into micro-batches never changes the gradient. A unit is a token,
a row, a group, or the batch; a micro-batch never splits one. An objective of unit "batch" sees all rows at once: the engine
first runs the batch without gradient, differentiates the objective there, and sends that gradient through each micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from .batch import Batch, Outputs
from .component import Expression, Part, decorator
from .errors import RewardlabError

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

    def losses(self, out: Outputs, batch: Batch, run: Any) -> dict[str, Tensor]:
        """The weighted sum of each term over this (micro-)batch, by name. Their sum is the loss."""
        found: dict[str, Tensor] = {}
        for scale, leaf in self.terms():
            value = leaf(out, batch, run)
            weight = weight_of(batch, leaf.unit)
            if value.shape != weight.shape:
                raise RewardlabError(f"{leaf} gave shape {tuple(value.shape)}; its unit {leaf.unit!r} has {tuple(weight.shape)}")
            if leaf.unit == "token":
                value = torch.where(batch.mask, value, 0.0)
            found[leaf.name] = found.get(leaf.name, torch.zeros(())) + scale * (value * weight).sum()
        return found

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


def weigh(batch: Batch, objective: Objective, weighting: Weighting | None) -> Batch:
    """Put the weights of every unit in the batch's columns, as computed on the whole of it."""
    for unit in objective.units:
        if weighting is not None and weighting.unit == unit:
            weight = weighting(batch)
        elif unit == "token":
            weight = batch.mask / batch.mask.sum().clamp(min=1)
        elif unit == "batch":
            weight = torch.ones(len(batch), device=batch.ids.device)
        else:
            count = len(batch) if unit == "row" else batch.groups
            weight = torch.full((count,), 1.0 / max(count, 1), device=batch.ids.device)
        batch.columns[f"weight.{unit}"] = weight[batch.group] if unit == "group" else weight
    return batch


def weight_of(batch: Batch, unit: str) -> Tensor:
    """The weights of this slice: (B, T), (B,), (G,) or ()."""
    column = batch.columns[f"weight.{unit}"]
    if unit == "batch":
        return column.new_ones(())
    return column[batch.heads] if unit == "group" else column


objective = decorator(Objective)
weighting = decorator(Weighting)
credit = decorator(Credit)
