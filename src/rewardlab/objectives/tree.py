"""Objectives and weightings for search trees. Rows of a tree share their first steps, and every step counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, Trajectory, objective, weighting
from rewardlab.settings.domain import PositiveInt


@objective(unit="token", wants=("value",))
def value_here_error(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(V - credit)^2, where V at a position is the value of the text up to and including it."""
    return (out.value - batch.credit).square()


@objective(unit="token", wants=("value",))
def value_here_cross_entropy(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """-[c log sigmoid(V) + (1 - c) log(1 - sigmoid(V))], c the credit: V at a position is the log-odds of the text up to there."""
    return F.binary_cross_entropy_with_logits(out.value, batch.credit.clamp(0, 1), reduction="none")


@weighting
def right_once(batch: Batch, *, right: float = 0.5) -> Tensor:
    """Equal weights for all distinct tokens of the right rows of each tree; 0 elsewhere. right: as in `each_step_end_once`."""
    return _normalised(_shares(batch, batch.reward.sum(1) > right))


@weighting
def each_step_end_once(batch: Batch, *, right: float = 0.5) -> Tensor:
    """Equal weights for the last tokens of all distinct steps, in trees with a right leaf; 0 elsewhere.

    right: a row is right if its reward is above this; where rewards are never negative, -1 takes all trees.
    """
    good = batch.reward.sum(1) > right
    # a tree without a right leaf has no step quality to learn (`credit.tree.quality`)
    solved = torch.zeros(batch.groups, dtype=torch.bool, device=good.device).index_put((batch.group[good],), torch.tensor(True))
    weight = _shares(batch, solved[batch.group])
    ends = torch.zeros_like(batch.mask)
    for i, (row, _) in enumerate(batch.rows):
        ends[i, [end - 1 for _, _, end in row.spans]] = True
    return _normalised(weight * ends)


@weighting(needs=("value.value",))
def best_right_once(batch: Batch, *, keep: PositiveInt = 2, right: float = 0.5) -> Tensor:
    """Equal weights for all distinct tokens of the `keep` best right rows of each tree; 0 elsewhere.

    The best rows are those with the highest value at their end, by the model "value".
    """
    last = batch.columns["value.value"].gather(1, (batch.length - 1)[:, None]).squeeze(1)
    last = torch.where(batch.reward.sum(1) > right, last, -torch.inf)
    # two stable sorts: by group, and within each group by value, best first
    order = torch.argsort(last, descending=True, stable=True)
    order = order[torch.argsort(batch.group[order], stable=True)]
    rank = torch.empty_like(order)
    # the position in this order minus that of the group's first row; groups keep their places
    rank[order] = torch.arange(len(order), device=order.device) - batch.first_rows[batch.group[order]]
    return _normalised(_shares(batch, (rank < keep) & (last > -torch.inf)))


def _shares(batch: Batch, chosen: Tensor) -> Tensor:
    rows = [t for t, _ in batch.rows]
    table = shares(rows, batch.group.tolist(), chosen.tolist(), batch.width)
    return torch.from_numpy(table).to(batch.mask.device) * batch.mask


def _normalised(weight: Tensor) -> Tensor:
    # a batch without any weight has loss 0, not NaN
    return weight / weight.sum().clamp(min=1e-8)


def shares(rows: Sequence[Trajectory], group: Sequence[int], kept: Sequence[bool], width: int) -> np.ndarray:
    """(B, width) one over the number of kept rows that contain a position's step; 0 at all other positions.

    Summed over rows, every step of a tree counts once, however many leaves are below it.
    """
    table = np.zeros((len(rows), width), np.float32)
    steps = {i: [((group[i], node), a, b) for node, a, b in rows[i].spans] for i in range(len(rows)) if kept[i]}
    holders = Counter(node for spans in steps.values() for node, _, _ in spans)
    for i, spans in steps.items():
        for node, a, b in spans:
            table[i, a:b] = 1 / holders[node]
    return table
