"""The loss of a batch: the losses of all units, by their weights.

    loss = sum over terms, over units u:  term(u) * weight(u)

The weights are computed on the whole batch, so cutting it into micro-batches never changes the gradient. An objective of unit
"batch" sees all rows at once: the engine first runs the batch without gradient, differentiates the objective there, and sends
that gradient through each micro-batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Batch, Objective, Outputs, Weighting
from rewardlab.errors import RewardlabError


def weigh(batch: Batch, objective: Objective, weighting: Weighting | None, max_new: int = 0) -> Batch:
    """Compute the weights of every unit on the whole batch, and store them as its columns "weight.UNIT".

    max_new: the longest reply that the run samples, which a weighting divides by that has `length` = 0.
    """
    if weighting is not None and weighting.settings.get("length") == 0:
        weighting = weighting.but(length=max_new)
    for unit in objective.units:
        if weighting is not None and weighting.unit == unit:
            weight = weighting(batch)
        elif unit == "token":
            # clamp: a batch without any decision has a loss of 0, not 0 / 0
            weight = batch.mask / batch.mask.sum().clamp(min=1)
        elif unit == "batch":
            weight = torch.ones(len(batch), device=batch.ids.device)
        else:
            count = len(batch) if unit == "row" else batch.groups
            weight = torch.full((count,), 1.0 / max(count, 1), device=batch.ids.device)
        # one entry per row even for groups: slicing a batch slices its columns by row
        batch.columns[f"weight.{unit}"] = weight[batch.group] if unit == "group" else weight
    return batch


def weight_of(batch: Batch, unit: str) -> Tensor:
    """The weights of this slice: (B, T), (B,), (G,) or ()."""
    column = batch.columns[f"weight.{unit}"]
    if unit == "batch":
        return column.new_ones(())
    return column[batch.first_rows] if unit == "group" else column  # one row stands for its group


def losses_of(objective: Objective, out: Outputs, batch: Batch, run: Any) -> dict[str, Tensor]:
    """The weighted sum of each term over this (micro-)batch, by name. Their sum is the loss."""
    losses: dict[str, Tensor] = {}
    for scale, leaf in objective.terms():
        value = leaf(out, batch, run)
        weight = weight_of(batch, leaf.unit)
        if value.shape != weight.shape:
            raise RewardlabError(f"{leaf} gave shape {tuple(value.shape)}; its unit {leaf.unit!r} has {tuple(weight.shape)}")
        if leaf.unit == "token":
            # at tokens that were only read an objective may compute anything, and NaN * 0 is NaN: hence `where`, not a product
            value = torch.where(batch.mask, value, 0.0)
        losses[leaf.name] = losses.get(leaf.name, torch.zeros(())) + scale * (value * weight).sum()
    return losses
