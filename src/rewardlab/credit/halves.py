"""Credit that compares the replies of a group which have more of something with those that have less of it."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.core.domain import NonNegativeFloat, Share
from rewardlab.credit.entropy import row_entropy


@credit(compares_rows=True)
def half_group_baseline_by_length(a: Tensor, batch: Batch, run: Run, *, mu: Share = 1.0, alpha: NonNegativeFloat = 1.0) -> Tensor:
    """`across_halves` by the number of decisions of a row.  alpha: factor of the rewards of the longer half."""
    return across_halves(a, batch.mask.sum(1).float(), batch, mu, high=alpha)


@credit(compares_rows=True, needs=("policy.entropy",))
def half_group_baseline_by_entropy(a: Tensor, batch: Batch, run: Run, *, mu: Share = 1.0, alpha: NonNegativeFloat = 1.0) -> Tensor:
    """`across_halves` by the mean entropy of the policy at the decisions of a row, before the update.

    alpha: factor of the rewards of the half of less entropy.
    """
    return across_halves(a, row_entropy(batch), batch, mu, low=alpha)


def across_halves(a: Tensor, metric: Tensor, batch: Batch, mu: float, low: float = 1.0, high: float = 1.0) -> Tensor:
    """A = mu (r - mean r of the other half) + (1 - mu) (r - mean r of its own half), the halves of a group by `metric` (B,).

    low, high: factors of the rewards in the lower and the upper half, where halves are compared.  Of an odd number the upper half
    has one more, and equal rows stay in their order. Rows without a verdict are in no half, and a row without any others gets no
    credit.
    Chen et al. 2025, arXiv:2509.23962
    """
    judged = batch.rewarded.any(1)
    r = torch.where(batch.rewarded, a, 0.0).sum(1)
    advantage = torch.zeros_like(r)
    for g in range(batch.groups):
        rows = ((batch.group == g) & judged).nonzero().squeeze(1)
        if len(rows) < 2:
            continue
        rows = rows[metric[rows].argsort(stable=True)]
        lower, upper = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        advantage[upper] = mu * (high * r[upper] - low * r[lower].mean()) + (1 - mu) * (r[upper] - r[upper].mean())
        advantage[lower] = mu * (low * r[lower] - high * r[upper].mean()) + (1 - mu) * (r[lower] - r[lower].mean())
    return torch.where(batch.mask, advantage[:, None], 0.0)
