"""Implicit rewards of a second model, and how well models' outputs agree with earned rewards."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Run, credit
from rewardlab.credit.tokens import over_steps
from rewardlab.credit.turns import over_turns, turn_sums
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat
from rewardlab.util.ranking import auc_of


def log_auc_within(said: Tensor, batch: Batch, run: Run, name: str = "prm_auc") -> None:
    """Log how often `said` (B,) is higher for a reply that earns than for one of its group that does not; the mean over groups."""
    right = batch.reward.sum(1) > 0  # (B,)
    judged = batch.rewarded.any(1)
    groups = (
        [*zip(said[own].tolist(), right[own].tolist(), strict=True)]
        for own in (judged & (batch.group == g) for g in range(batch.groups))
    )
    if known := [auc for group in groups if not math.isnan(auc := auc_of(group))]:
        run.log(name, sum(known) / len(known))


def log_fit(said: Tensor, batch: Batch, run: Run, name: str) -> None:
    """Log the correlation over replies that have a verdict of `said` (B,) and what they earned, where both vary."""
    pairs = torch.stack([said, batch.reward.sum(1)])[:, batch.rewarded.any(1)]
    if pairs.shape[1] > 1 and bool((pairs.std(1) > 0).all()):
        run.log(name, float(torch.corrcoef(pairs)[0, 1]))


@credit(needs=("prm.logprobs", "policy.logprobs"))
def plus_implicit_turns(
    a: Tensor, batch: Batch, run: Run, *, chain: Credit, beta: PositiveFloat = 0.05, alpha: NonNegativeFloat = 1.0
) -> Tensor:
    """Add alpha times a turn's implicit reward by the model `prm` to the credit of each of the turn's decisions, and of no others:

    r_t = beta sum over the decisions of turn t of log(prm / pi_old), through `chain`, for which each turn is one reward event

    pi_old is the policy before the update. Rows without a verdict get nothing. prm_auc is logged, of the sums over a reply
    (`log_auc_within`).
    Liu et al. 2025, arXiv:2509.19199
    """
    # not batch.old: sampler and trainer round differently, and a chain that divides by the deviation would make a signal of that
    log_ratio = beta * (batch.columns["prm.logprobs"] - batch.columns["policy.logprobs"])
    sums = turn_sums(log_ratio, batch.mask)  # (B, N)
    log_auc_within(sums.sum(1), batch, run)
    judged = batch.mask & batch.rewarded.any(1, keepdim=True)
    ends = judged.clone()
    ends[:, :-1] &= ~batch.mask[:, 1:]
    rewards = torch.where(ends, over_turns(sums, batch.mask), 0.0)
    worth = chain(rewards, replace(batch, reward=rewards, rewarded=ends, terms={}), run)
    return a + alpha * over_steps(worth, ends, judged)
