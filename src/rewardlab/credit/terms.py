"""Credit of each reward term on its own, added up by the weights that the reward gives them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Run, credit
from rewardlab.errors import RewardlabError, unknown


def credit_of(name: str, chain: Credit, batch: Batch, run: Run) -> Tensor:
    """(B, T) what a chain makes of one term alone, unweighted."""
    events = batch.terms[name]
    return chain(events.reward, replace(batch, reward=events.reward, rewarded=events.rewarded, terms={name: events}), run)


@credit
def each_term(a: Tensor, batch: Batch, run: Run, *, chain: Credit) -> Tensor:
    """Every term through the same chain, with statistics of its own:  A = sum_k w_k chain(r_k)."""
    if not batch.terms:
        raise RewardlabError("each_term needs a reward with named terms")
    return torch.stack([e.weight * credit_of(name, chain, batch, run) for name, e in batch.terms.items()]).sum(0)


@credit
def by_term(a: Tensor, batch: Batch, run: Run, *, chains: dict[str, Credit], others: Credit | None = None) -> Tensor:
    """Each named term through a chain of its own:  A = sum_k w_k chain_k(r_k). Terms not named go through `others`, if given."""
    for name in chains:
        if name not in batch.terms:
            raise unknown("reward term", name, batch.terms)
    every = chains | ({name: others for name in batch.terms if name not in chains} if others is not None else {})
    return torch.stack([batch.terms[name].weight * credit_of(name, chain, batch, run) for name, chain in every.items()]).sum(0)
