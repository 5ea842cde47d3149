"""The KL to the starting policy as a part of the reward."""

from __future__ import annotations

from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.core.domain import NonNegativeFloat


@credit(needs=("old", "ref"))
def less_kl(a: Tensor, batch: Batch, run: Run, *, beta: NonNegativeFloat = 0.01) -> Tensor:
    """Subtract beta log(pi_old / ref) at every decision. Its sum over a reply estimates beta KL(pi_old || ref).

    Ziegler et al. 2019, arXiv:1909.08593; Ouyang et al. 2022, arXiv:2203.02155
    """
    # where, not a product with the mask: log-probs may be NaN where the policy decided nothing
    return a - (beta * (batch.old - batch.ref)).where(batch.mask, 0.0)
