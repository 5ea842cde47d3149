"""Credit computed for each reward term separately, and added up with the terms' weights."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Run, credit
from rewardlab.errors import RewardlabError, unknown


def credit_of(name: str, chain: Credit, batch: Batch, run: Run) -> Tensor:
    """(B, T) the credit that a chain gives for one term alone, unweighted."""
    events = batch.terms[name]
    # parts of the chain read reward events from the batch, so it must show them this term's only
    return chain(events.reward, replace(batch, reward=events.reward, rewarded=events.rewarded, terms={name: events}), run)


@credit
def each_term(a: Tensor, batch: Batch, run: Run, *, chain: Credit) -> Tensor:
    """Each term goes through the same chain, with statistics of its own events:  A = sum_k w_k chain(r_k)."""
    if not batch.terms:
        raise RewardlabError("each_term needs a reward with named terms")
    # weights come after the chain: a chain that divides by the std would cancel them
    return torch.stack([e.weight * credit_of(name, chain, batch, run) for name, e in batch.terms.items()]).sum(0)


@credit
def by_term(a: Tensor, batch: Batch, run: Run, *, chains: dict[str, Credit], others: Credit | None = None) -> Tensor:
    """Each named term goes through its own chain:  A = sum_k w_k chain_k(r_k).

    The other terms go through `others`; without it, they get no credit.
    """
    for name in chains:
        if name not in batch.terms:
            raise unknown("reward term", name, batch.terms)
    chain_of = chains | ({name: others for name in batch.terms if name not in chains} if others is not None else {})
    return torch.stack([batch.terms[name].weight * credit_of(name, chain, batch, run) for name, chain in chain_of.items()]).sum(0)


@credit
def scale_by_term(a: Tensor, batch: Batch, run: Run, *, term: str) -> Tensor:
    """Multiply the credit of each row by the number that a reward reports as its term `term`; rows without it keep theirs.

    For terms of weight 0, which say how much a prompt counts: as a factor of the reward, a division by its deviation cancels them.
    """
    if term not in batch.terms:
        raise unknown("reward term", term, batch.terms)
    events = batch.terms[term]
    count = events.rewarded.sum(1)
    mean = torch.where(events.rewarded, events.reward, 0.0).sum(1) / count.clamp(min=1)
    return a * torch.where(count > 0, mean, 1.0)[:, None]
