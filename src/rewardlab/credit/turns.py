"""Credit by turns. A turn is one reply of a row."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit


def turn_of(mask: Tensor) -> Tensor:
    """(B, T) number of the reply of a position, from 0; -1 before the first. Text that the policy reads separates replies."""
    begins = mask.clone()
    begins[:, 1:] &= ~mask[:, :-1]
    return begins.long().cumsum(1) - 1


def turn_sums(x: Tensor, mask: Tensor) -> Tensor:
    """(B, N) sums of x (B, T) over the decided positions of each of at most N turns."""
    turn = turn_of(mask)
    table = x.new_zeros(len(x), int(turn.max()) + 1 if turn.numel() else 0)
    return table.scatter_add(1, turn.clamp(min=0), torch.where(mask, x, 0.0))


def over_turns(table: Tensor, mask: Tensor) -> Tensor:
    """(B, T) every decision gets the number (B, N) of its turn."""
    return torch.where(mask, table.gather(1, turn_of(mask).clamp(min=0)), 0.0)


@credit
def turn_to_go(a: Tensor, batch: Batch, run: Run, *, gamma: float = 1.0) -> Tensor:
    """Every decision of a turn gets the rewards of its turn and of later ones, discounted by `gamma` per turn:

    G_k = r_k + gamma G_{k+1}
    """
    sums = turn_sums(a, batch.mask)
    after = sums.new_zeros(len(sums))
    returns = torch.empty_like(sums)
    for k in reversed(range(sums.shape[1])):
        after = returns[:, k] = sums[:, k] + gamma * after
    return over_turns(returns, batch.mask)
