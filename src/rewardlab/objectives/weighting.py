"""Weights of tokens in the loss."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, weighting
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat


@weighting
def token_mean(batch: Batch) -> Tensor:
    """Every decision of the batch counts the same, so that long replies weigh more."""
    # clamped: a batch without a decision has loss 0, not NaN
    return batch.mask / batch.mask.sum().clamp(min=1)


@weighting
def preferred_mean(batch: Batch) -> Tensor:
    """Every decision of the preferred rows counts the same, those of the others nothing: the first row of a pair is preferred."""
    preferred = torch.zeros_like(batch.mask)
    preferred[batch.first_rows] = batch.mask[batch.first_rows]
    return preferred / preferred.sum().clamp(min=1)


@weighting
def tagged_mean(batch: Batch, *, tag: str) -> Tensor:
    """Every decision of the rows with this tag (set by the rollout) counts the same, those of the others nothing."""
    tagged = torch.tensor([t.tag == tag for t, _ in batch.rows], dtype=torch.bool, device=batch.mask.device)
    weight = batch.mask & tagged[:, None]
    # if no row has it, all weights are 0 and the update is empty, instead of 0 / 0
    return weight / weight.sum().clamp(min=1)


@weighting
def row_mean(batch: Batch) -> Tensor:
    """Every reply counts the same, whatever its length (GRPO's 1/|o|)."""
    count = batch.mask.sum(1, keepdim=True)
    # rows without a decision are not counted: they would only shrink the loss of the others
    rows = (count > 0).sum().clamp(min=1)
    return batch.mask / (count.clamp(min=1) * rows)


@weighting
def constant_length(batch: Batch, *, length: NonNegativeInt = 0) -> Tensor:
    """One over (rows * length) for every decision: a token's weight does not depend on its reply's length.

    length: 0 stands for the longest reply that the run may sample (--max-new), which the engine fills in.
    Liu et al. 2025, arXiv:2503.20783
    """
    if not length:
        raise RewardlabError("constant_length(length=0) is for a run, which knows its longest reply: give it a length here")
    return batch.mask / torch.tensor(float(len(batch) * length))


@weighting
def step_ends(batch: Batch, *, times: PositiveFloat = 8.0) -> Tensor:
    """As `token_mean`, but the last token of each step, before its line break or end token, weighs `times` as much.

    A judgement of one line per step has its verdict there: a few tokens among many that are easier to learn. The rollout marks the
    steps (steps="newline").
    """
    weight = batch.mask.float()
    for i, (row, _) in enumerate(batch.rows):
        if not row.steps:
            raise RewardlabError('step_ends needs the positions where steps end: set steps="newline" in the rollout')
        weight[i, [at - 1 for at in row.steps]] *= times
    return weight / weight.sum().clamp(min=1)
