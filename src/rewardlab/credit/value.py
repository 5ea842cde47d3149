"""Credit over time: returns, and a critic's estimate of them."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.credit.group import with_verdict
from rewardlab.settings.domain import Share

BLOCK = 512
"""Positions per matrix product: few Python steps for a long row, and a matrix of 512 x 512 at most."""


def discounted_sums(x: Tensor, decay: float) -> Tensor:
    """y[:, t] = sum over s >= t of decay^(s-t) x[:, s], for x (B, D), in blocks of matrix products."""
    if decay == 1.0:
        return x.flip(1).cumsum(1).flip(1)
    y = torch.empty_like(x)
    # y at the first position of the block that follows
    after = x.new_zeros(x.shape[0])  # (B,)
    for start in reversed(range(0, x.shape[1], BLOCK)):
        part = x[:, start : start + BLOCK]
        n = part.shape[1]
        power = torch.arange(n, device=x.device)
        lag = power[:, None] - power[None, :]  # (s, t)
        # clamped, because decay to a negative power overflows even where the result is not used
        matrix = torch.where(lag >= 0, decay ** lag.clamp(min=0).to(x.dtype), 0.0)
        y[:, start : start + BLOCK] = part @ matrix + after[:, None] * decay ** (n - power).to(x.dtype)
        after = y[:, start]
    return y


def over_decisions(x: Tensor, mask: Tensor, decay: float) -> Tensor:
    """`discounted_sums` over the decided positions alone: text that the policy reads adds no discount."""
    # without a discount, distances do not matter and packing is not needed
    if decay == 1.0:
        return torch.where(mask, discounted_sums(torch.where(mask, x, 0.0), 1.0), 0.0)
    # a stable sort by mask packs the decisions to the left, in their order
    order = torch.argsort((~mask).int(), dim=1, stable=True)
    packed = torch.where(mask, x, 0.0).gather(1, order)
    return torch.where(mask, torch.zeros_like(x).scatter(1, order, discounted_sums(packed, decay)), 0.0)


def value_before(value: Tensor, mask: Tensor) -> Tensor:
    """V of the state in which each decision was made: that of the text before it, one position to the left."""
    # roll wraps the last column to position 0, which is never decided: a row begins with a prompt
    return torch.where(mask, value.roll(1, 1), 0.0)


def next_decision(v: Tensor, mask: Tensor) -> Tensor:
    """For each decided position, v at the row's next one; 0 after the last."""
    order = torch.argsort((~mask).int(), dim=1, stable=True)
    packed = torch.where(mask, v, 0.0).gather(1, order)
    # after the last decision the episode is over, and V is 0
    following = torch.cat((packed[:, 1:], packed.new_zeros(len(v), 1)), 1)
    return torch.where(mask, torch.zeros_like(v).scatter(1, order, following), 0.0)


@credit
def to_go(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 1.0) -> Tensor:
    """Every decision gets the (discounted) return from it on, so that an outcome reward reaches the whole reply."""
    return over_decisions(a, batch.mask, gamma)


@credit(needs=("value",))
def gae(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 1.0, lam: Share = 0.95) -> Tensor:
    """Generalised advantage estimation:  A_t = sum_k (gamma lam)^k (r_{t+k} + gamma V_{t+k+1} - V_{t+k}).

    A row without a verdict gets 0, and has no effect on a critic. Schulman et al. 2016, arXiv:1506.02438
    """
    v = value_before(batch.value, batch.mask)
    delta = a + gamma * next_decision(v, batch.mask) - v
    return over_decisions(torch.where(with_verdict(batch), delta, 0.0), batch.mask, gamma * lam)


@credit(needs=("value",))
def lambda_return(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 1.0, lam: Share = 0.95) -> Tensor:
    """The regression target of a critic: its value before the update plus GAE."""
    return gae(gamma=gamma, lam=lam)(a, batch, run) + value_before(batch.value, batch.mask)
