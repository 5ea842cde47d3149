"""Credit by the policy's entropy."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.credit.group import center, scale_by_std, with_verdict
from rewardlab.credit.sign_credit import outcomes
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveShare

LEAST = 1e-6
"""Entropy below which tokens are as sure as each other: its inverse is taken."""


def row_entropy(batch: Batch) -> Tensor:
    """(B,) the mean entropy of the policy at the decisions of each row, before the update; 0 where there are none."""
    return torch.where(batch.mask, batch.columns["policy.entropy"], 0.0).sum(1) / batch.mask.sum(1).clamp(min=1)


def relative_weights(entropy: Tensor, right: Tensor, where: Tensor, cell: Tensor) -> Tensor:
    """Entropy over its mean in the cell where `right`, the inverse of entropy over its mean where not; 0 outside of `where`.

    cell: the number of what each entry is compared with; right and wrong ones are compared apart. All of one shape.
    """
    entropy = entropy.clamp(min=LEAST)
    weight = torch.where(where, torch.where(right, entropy, 1 / entropy), 0.0)
    # even numbers for the right, odd ones for the wrong
    key = (2 * cell + (~right).long()).flatten()
    size = int(key.max()) + 1 if key.numel() else 0
    total, count = (weight.new_zeros(size).index_add(0, key, x.flatten()) for x in (weight, where.to(weight.dtype)))
    return weight * (count / total.clamp(min=1e-12))[key].view_as(weight)


@credit(needs=("policy.entropy",))
def entropy_weighted_tokens(
    a: Tensor, batch: Batch, run: Run, *, outcome: NonNegativeFloat = 1.0, entropy: NonNegativeFloat = 0.1, apart: bool = False
) -> Tensor:
    """Right rows earn at their t-th decision outcome + entropy H_it d_t / sum_k H_kt over the d_t right rows that have one, wrong
    rows minus the same with 1/H; normalised over all decisions of the group.

    H: the policy's entropy before the update.  apart: normalise over the decisions of right rows, and over those of wrong ones;
    then nothing says which rows were right. Right is what earned more than 0.  Tan et al. 2025, arXiv:2508.04349
    """
    judged, right = outcomes(a, batch)
    where, rights = batch.mask & judged[:, None], right[:, None].expand(batch.mask.shape)
    # the number of a decision within its row: rows of several turns differ in where they are
    place = (batch.mask.cumsum(1) - 1).clamp(min=0)
    weight = relative_weights(batch.columns["policy.entropy"], rights, where, batch.group[:, None] * batch.width + place)
    shaped = torch.where(rights, 1.0, -1.0) * (outcome + entropy * weight)
    # every decision is an event of its own
    return _normalised(shaped, where, rights, batch, run, apart)


def _normalised(shaped: Tensor, events: Tensor, right: Tensor, batch: Batch, run: Run, apart: bool) -> Tensor:
    """Events with mean 0 and deviation 1 over each group, or over the right and the wrong ones of each group; 0 elsewhere."""
    sides = [events & right, events & ~right] if apart else [events]
    chain, found = center() >> scale_by_std(), torch.zeros_like(shaped)
    for side in sides:
        found = found + chain(torch.where(side, shaped, 0.0), replace(batch, rewarded=side), run)
    return found


@credit(needs=("policy.entropy",))
def entropy_weighted_rows(
    a: Tensor, batch: Batch, run: Run, *, outcome: NonNegativeFloat = 1.0, entropy: NonNegativeFloat = 0.1, apart: bool = False
) -> Tensor:
    """`entropy_weighted_tokens` with a row's mean entropy instead of a token's: one number for each reply."""
    judged, right = outcomes(a, batch)
    count = batch.mask.sum(1)
    weight = relative_weights(row_entropy(batch), right, judged, batch.group)
    shaped = torch.where(right, 1.0, -1.0) * (outcome + entropy * weight)
    # one event for each row, at its last decision, so that rows count alike whatever their length
    last = batch.mask & (batch.mask.cumsum(1) == count[:, None]) & judged[:, None]
    wide = shaped[:, None].expand(batch.mask.shape)
    events = _normalised(wide, last, right[:, None].expand(batch.mask.shape), batch, run, apart)
    return to_go()(events, replace(batch, reward=torch.where(last, wide, 0.0), rewarded=last), run)


@credit(needs=("old", "policy.entropy"))
def entropy_change(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Omega = -A (1 - pi) (log pi + H): the estimated change of a decision's entropy by a step along A log pi of its token.

    Above 0 it rises. Only the logit of the sampled token is thought to move; pi is the policy before the update.
    Hao et al. 2025, arXiv:2510.10150
    """
    logprob = torch.where(batch.mask, batch.old, 0.0)
    return torch.where(batch.mask, -a * (1 - logprob.exp()) * (logprob + batch.columns["policy.entropy"]), 0.0)


@credit(needs=("old", "policy.entropy"))
def damp_entropy_change(a: Tensor, batch: Batch, run: Run, *, least: PositiveShare = 0.8, floor: PositiveFloat = 0.02) -> Tensor:
    """Multiply the credit of each decision by exp(-k |Omega|), with k such that the largest |Omega| of the batch gets the factor
    `least`.

    floor: the largest |Omega| counts as this much at least, so that a batch in which nothing changes is left alone.
    Logs `entropy_change`, the mean of Omega over the decisions.
    """
    omega = entropy_change()(a, batch, run)
    where = with_verdict(batch)
    if bool(where.any()):
        run.log("entropy_change", float(omega[where].mean()))
    most = omega.abs().max().clamp(min=floor) if omega.numel() else floor
    return a * torch.exp(math.log(least) / most * omega.abs())


@credit(needs=("old", "policy.logprobs"))
def drop_covarying(
    a: Tensor, batch: Batch, run: Run, *, share: PositiveShare = 0.02, low: float = 1.0, high: float = 40.0,
    eps: PositiveFloat = 0.2, eps_high: PositiveFloat = 0.28,
) -> Tensor:  # fmt: skip
    """Zero the credit of decisions with a covariance (A - mean A)(log pi - mean log pi) between `low` and `high`, which drive
    entropy collapse: a random `share` of all decisions, at least one, or all such decisions if they are fewer.

    pi: the policy before the update; means over all decisions of the batch. Where the ratio to the old policy is clipped, at
    1 - eps or 1 + eps_high, nothing is learnt anyway: such decisions are not chosen.  Logs `covarying`, the share between them.
    Clip-Cov, Cui et al. 2025, arXiv:2505.22617
    """
    if not low < high:
        raise RewardlabError(f"drop_covarying: low={low:g} must be below high={high:g}")
    where, now = with_verdict(batch), batch.columns["policy.logprobs"]
    count = int(where.sum())
    if not count:
        return a
    ratio = (now - batch.old).exp()
    clipped = torch.where(a > 0, ratio > 1 + eps_high, (a < 0) & (ratio < 1 - eps))
    covariance = (a - a[where].mean()) * (now - now[where].mean())
    between = (where & ~clipped & (covariance > low) & (covariance < high)).nonzero()
    run.log("covarying", len(between) / count)
    # the stream of random numbers lives on the CPU
    chosen = between[torch.randperm(len(between), generator=run.rng("covarying"))[: max(1, int(share * count))].to(a.device)]
    kept = torch.ones_like(where)
    kept[chosen[:, 0], chosen[:, 1]] = False
    return torch.where(kept, a, 0.0)
