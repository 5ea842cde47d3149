"""Credit by turns. A turn is one reply of a row."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.settings.domain import Share


def turn_of(mask: Tensor) -> Tensor:
    """(B, T) the number of the turn at each position, from 0; -1 before the first turn.

    Text that the policy reads ends a turn, and has the number of the turn before it.
    """
    # a turn begins at a decided position whose predecessor is not
    begins = mask.clone()
    begins[:, 1:] &= ~mask[:, :-1]
    return begins.long().cumsum(1) - 1


def turn_sums(x: Tensor, mask: Tensor) -> Tensor:
    """(B, N) sums of x (B, T) over the decided positions of each of at most N turns."""
    turn = turn_of(mask)
    table = x.new_zeros(len(x), int(turn.max()) + 1 if turn.numel() else 0)
    # -1 is not a valid index; what is added to turn 0 for these positions is 0
    return table.scatter_add(1, turn.clamp(min=0), torch.where(mask, x, 0.0))


def over_turns(table: Tensor, mask: Tensor) -> Tensor:
    """(B, T) every decision gets its turn's number from the table (B, N); 0 at other positions."""
    return torch.where(mask, table.gather(1, turn_of(mask).clamp(min=0)), 0.0)


@credit
def turn_to_go(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 1.0) -> Tensor:
    """Every decision of a turn gets the rewards of its own and later turns, discounted by `gamma` per turn:

    G_k = r_k + gamma G_{k+1}
    """
    sums = turn_sums(a, batch.mask)
    after = sums.new_zeros(len(sums))
    returns = torch.empty_like(sums)
    # a loop over turns, not tokens: there are few of them
    for k in reversed(range(sums.shape[1])):
        after = returns[:, k] = sums[:, k] + gamma * after
    return over_turns(returns, batch.mask)
