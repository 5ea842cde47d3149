"""Token-level credit: from the outcome of the reply and the reward of the token's step."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Run, credit
from rewardlab.errors import unknown


def over_steps(reward: Tensor, rewarded: Tensor, mask: Tensor) -> Tensor:
    """(B, T) every decision gets the reward at the end of its step: that of the next event from it on; 0 after the last."""
    width = reward.shape[1]
    place = torch.arange(width, device=reward.device).expand_as(reward)
    # the nearest event from each position on, found as the least place seen from the right
    following = torch.where(rewarded, place, width).flip(1).cummin(1).values.flip(1)
    found = reward.gather(1, following.clamp(max=max(0, width - 1)))
    return torch.where(mask & (following < width), found, 0.0)


@credit
def each_token(a: Tensor, batch: Batch, run: Run, *, steps: str, chain: Credit) -> Tensor:
    """Give every token the terms of its reply, and from the term `steps` the reward of its own step; then apply `chain`, with each
    token as a reward event.

    So a statistic over a group's events is one over its tokens, and long replies weigh more in it. Rows without a verdict are left
    out.  Xie et al. 2025, arXiv:2508.02298
    """
    if steps not in batch.terms:
        raise unknown("reward term", steps, batch.terms)
    judged = batch.mask & batch.rewarded.any(1, keepdim=True)
    paid = torch.zeros_like(a)
    for name, term in batch.terms.items():
        own = over_steps(term.reward, term.rewarded, judged) if name == steps else term.reward.sum(1, keepdim=True)
        paid = paid + term.weight * torch.where(judged, own, 0.0)
    return chain(paid, replace(batch, reward=paid, rewarded=judged, terms={}), run)
