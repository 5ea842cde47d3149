"""Models of the return of a reply or episode, from a prefix of it, and of each turn's contribution."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective


def turn_ends(mask: Tensor) -> Tensor:
    """(B, T) True at the last decision of each turn."""
    ends = mask.clone()
    ends[:, :-1] &= ~mask[:, 1:]
    return ends


@objective(unit="row", wants=("value",))
def turns_sum_error(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(sum over turns of V at the turn's end - R)^2, with R the return of the episode. Episodes without a verdict teach nothing.

    So V comes to say what a turn contributes, as seen from its end. Wang et al. 2025, arXiv:2505.20732
    """
    said = torch.where(turn_ends(batch.mask), out.value, 0.0).sum(1)
    error = (said - torch.where(batch.rewarded, batch.reward, 0.0).sum(1)).square()
    return torch.where(batch.rewarded.any(1), error, 0.0)


@objective(unit="token", wants=("value",))
def outcome_error(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(V_t - R)^2 at each decision t: V_t is read after it and predicts R, the return of the whole reply, from its prefix.

    Rows without a verdict teach nothing.
    """
    earned = torch.where(batch.rewarded, batch.reward, 0.0).sum(1, keepdim=True)
    return torch.where(batch.mask & batch.rewarded.any(1, keepdim=True), (out.value - earned).square(), 0.0)
