"""Credit by success or failure alone."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.settings.domain import NonNegativeFloat


def outcomes(a: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """(B,) whether a row has a verdict, and whether its rewards add up to more than 0."""
    return batch.rewarded.any(1), torch.where(batch.rewarded, a, 0.0).sum(1) > 0


@credit
def sign_credit(a: Tensor, batch: Batch, run: Run, *, positive: NonNegativeFloat = 1.0, negative: NonNegativeFloat = 1.0) -> Tensor:
    """Every decision gets `positive` where its row earned more than 0, and -`negative` where it did not; there is no baseline.

    Rows without a verdict get no credit.  Zhu et al. 2025, arXiv:2506.01347
    """
    judged, right = outcomes(a, batch)
    value = torch.where(right, positive, -negative).to(a.dtype)  # (B,)
    return torch.where(batch.mask & judged[:, None], value[:, None], 0.0)
