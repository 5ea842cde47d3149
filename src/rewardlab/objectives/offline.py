"""Objectives for recorded decisions and a critic that estimates V and Q (`policies.actor`).

A critic's value at a decision's own position is Q, at the position before it V, and at the position after it V of the next state.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.core import Batch, Outputs, Run, objective
from rewardlab.core.domain import NonNegativeFloat, PositiveFloat, Share

from .pairs import margin, row_sum


def implied_reward(value: Tensor, batch: Batch, gamma: float) -> Tensor:
    """(B, T) r_Q = Q(s, a) - gamma V(s') at decisions, V held fixed; V is 0 after the last observation."""
    position = torch.arange(batch.width, device=value.device)
    # roll wraps around at the end of the batch, and padding follows shorter rows: both are masked
    following = value.roll(-1, 1).masked_fill(position >= batch.length[:, None] - 1, 0.0)
    # detached, as the target in temporal-difference learning: only Q is moved
    return torch.where(batch.mask, value - gamma * following.detach(), 0.0)


@objective(unit="group", wants=("value",))
def implied_preference(out: Outputs, batch: Batch, run: Run, *, gamma: Share = 0.99) -> Tensor:
    """-log sigmoid(sum r_Q(preferred) - sum r_Q(other)): Bradley-Terry over the rewards that Q implies."""
    return -F.logsigmoid(margin(row_sum(implied_reward(out.value, batch, gamma), batch), batch))


@objective(unit="token", wants=("value",))
def implied_reward_square(out: Outputs, batch: Batch, run: Run, *, gamma: Share = 0.99) -> Tensor:
    """r_Q^2, a regulariser: preferences alone do not determine r_Q."""
    return implied_reward(out.value, batch, gamma).square()


@objective(unit="token", wants=("value",))
def expectile_value(out: Outputs, batch: Batch, run: Run, *, tau: Share = 0.7) -> Tensor:
    """|tau - 1(u < 0)| u^2 with u = Q(s, a) - V(s), Q held fixed: for tau > 1/2, V is nearer to the better of the recorded actions.

    Kostrikov et al. 2022, arXiv:2110.06169
    """
    # Q is at the decision's own position, V one position before it
    error = out.value.detach() - out.value.roll(1, 1)
    return (tau - (error < 0).float()).abs() * error.square()


@objective(unit="token", needs=("value",))
def advantage_weighted(
    out: Outputs, batch: Batch, run: Run, *, greed: NonNegativeFloat = 3.0, most: PositiveFloat = 100.0
) -> Tensor:
    """-min(exp(greed (Q - V)), most) log pi; greed = 0 is plain imitation.  Peng et al. 2019, arXiv:1910.00177"""
    advantage = batch.value - batch.value.roll(1, 1)
    # clamped before exp, so that a large advantage cannot overflow
    return -(greed * advantage).clamp(max=math.log(most)).exp() * out.logprobs
