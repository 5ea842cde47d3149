"""Credit of steps that are paid for what they are themselves, and not for what follows."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit

from .tokens import over_steps


@credit
def in_its_step(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Every decision gets what the step that it stands in is paid, and nothing of what later steps are."""
    return over_steps(torch.where(batch.rewarded, a, 0.0), batch.rewarded, batch.mask)
