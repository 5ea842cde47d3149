"""A model of how much each turn of an episode adds to what the episode earns."""

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
    """(sum over turns of V at the turn's end - R)^2, R all that the episode earned. Episodes without a verdict teach nothing.

    So V comes to say what a turn contributes, as seen from its end. Wang et al. 2025, arXiv:2505.20732
    """
    said = torch.where(turn_ends(batch.mask), out.value, 0.0).sum(1)
    error = (said - torch.where(batch.rewarded, batch.reward, 0.0).sum(1)).square()
    return torch.where(batch.rewarded.any(1), error, 0.0)
