"""Credit of thinking that is judged at several budgets."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.core.domain import PositiveInt
from rewardlab.credit.group import center
from rewardlab.credit.tokens import over_steps
from rewardlab.credit.value import to_go


def budget_advantages(rewards: Tensor, prior: Tensor, baseline: str) -> Tensor:
    """(n, S) advantages from what n traces earn at S budgets, whose probabilities are `prior` (S,).

    R_s = sum_{j >= s} p_j r_j.  group: less its mean over the traces.  budget: less (s V1 + (S - s) V2) / S for s = 0 .. S - 1, V2
    that mean, and V1 the trace's own rewards before s, of which each counts twice as much as the one before, times sum_{j>=s} p_j.
    """
    n, size = rewards.shape
    after = (rewards * prior).flip(1).cumsum(1).flip(1)
    if baseline == "none":
        return after
    group = after.mean(0, keepdim=True) if n > 1 else torch.zeros_like(after)
    if baseline == "group":
        return after - group
    weight = 2.0 ** torch.arange(size, dtype=rewards.dtype, device=rewards.device)
    before, total = (rewards * weight).cumsum(1) - rewards * weight, weight.cumsum(0) - weight
    own = before / total.clamp(min=1) * prior.flip(0).cumsum(0).flip(0)
    share = torch.arange(size, device=rewards.device) / size
    return after - (share * own + (1 - share) * group)


@credit
def relative_to_budgets(
    a: Tensor, batch: Batch, run: Run, *, cuts: PositiveInt = 4, prior: Literal["uniform", "linear"] = "uniform",
    baseline: Literal["budget", "group", "none"] = "budget",
) -> Tensor:  # fmt: skip
    """Rows tagged "thinking" get `budget_advantages`, each token that of the budget in which it stands; all others, reward less
    mean of the group.  A trace that ends early earns at the budgets left what it earned at the last.

    prior: of the budgets; linear: as their lengths.  Rows without a verdict get nothing.
    """
    p = torch.ones(cuts, device=a.device) if prior == "uniform" else torch.arange(1.0, cuts + 1, device=a.device)
    out = (center() >> to_go())(a, batch, run)
    for g in range(batch.groups):
        rows = ((batch.group == g) & batch.rewarded.any(1)).nonzero().squeeze(1)
        if not len(rows) or batch.rows[int(rows[0])][0].tag != "thinking":
            continue
        ends = [batch.rewarded[i].nonzero().squeeze(1) for i in rows]
        paid = torch.stack(
            [a[i, at[torch.arange(cuts, device=a.device).clamp(max=len(at) - 1)]] for i, at in zip(rows, ends, strict=True)]
        )
        advantages = budget_advantages(paid, p / p.sum(), baseline)
        for i, at, row in zip(rows, ends, advantages, strict=True):
            table = torch.zeros_like(a[i]).scatter(0, at, row[: len(at)])
            out[i] = over_steps(table[None], batch.rewarded[i][None], batch.mask[i][None])[0]
    return out
