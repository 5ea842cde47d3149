"""Leave-one-out credit for episodes of several turns, and the exclusion of turns with a sampler/trainer mismatch."""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.credit.turns import over_turns, turn_of, turn_sums, turn_to_go
from rewardlab.settings.domain import NonNegativeFloat, Share


def turn_counts(batch: Batch) -> Tensor:
    """(B, N) True where a row has a verdict and a turn of that number, of at most N turns."""
    # the number of a row's last turn, plus one; -1 at positions that nobody decided, so an empty row has 0 turns
    turns = turn_of(batch.mask).where(batch.mask, -1).amax(1, keepdim=True) + 1
    number = torch.arange(int(turns.max()) if turns.numel() else 0, device=turns.device)
    return (number < turns) & batch.rewarded.any(1, keepdim=True)


@credit
def turn_leave_one_out(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 1.0) -> Tensor:
    """The return of a turn against the mean return of the same turn in the group's other rows that have it:

    A_it = G_it - 1/(N_t - 1) sum_{j != i} G_jt,   G_t = r_t + gamma G_{t+1}

    A turn that no other row has keeps its return: a baseline of 0 is unbiased too.
    Liu et al. 2026, arXiv:2602.05885
    """
    has, returns = turn_returns(a, batch, run, gamma)
    baseline = (over_group(returns, batch) - returns) / (over_group(has.float(), batch) - has.float()).clamp(min=1)
    return over_turns(torch.where(has, returns - baseline, 0.0), batch.mask)


@credit
def turn_center(a: Tensor, batch: Batch, run: Run, *, gamma: Share = 1.0) -> Tensor:
    """The return of a turn against the mean return of the same turn in all rows of the group that have it, this one included:

    A_it = G_it - 1/N_t sum_j G_jt,   G_t = r_t + gamma G_{t+1}

    GRPO's baseline, turn by turn. The row's own return in it shrinks the gradient of turn t by (N_t - 1) / N_t.
    """
    has, returns = turn_returns(a, batch, run, gamma)
    baseline = over_group(returns, batch) / over_group(has.float(), batch).clamp(min=1)
    return over_turns(torch.where(has, returns - baseline, 0.0), batch.mask)


def turn_returns(a: Tensor, batch: Batch, run: Run, gamma: float) -> tuple[Tensor, Tensor]:
    """(B, N) which turns a row has, and (B, N) their returns, 0 for the others."""
    has = turn_counts(batch)
    # turn_to_go gives every decision of a turn its return, so the mean over the turn is the return
    length = turn_sums(torch.ones_like(a), batch.mask).clamp(min=1)
    return has, torch.where(has, turn_sums(turn_to_go(gamma=gamma)(a, batch, run), batch.mask) / length, 0.0)


def over_group(x: Tensor, batch: Batch) -> Tensor:
    """(B, N) sums of x (B, N) over the rows of each group, turn by turn, for every row of it."""
    return x.new_zeros(batch.groups, x.shape[1]).index_add(0, batch.group, x)[batch.group]


@credit(needs=("policy.logprobs",))
def keep_matched_turns(
    a: Tensor,
    batch: Batch,
    run: Run,
    *,
    low: NonNegativeFloat = 0.999,
    high: NonNegativeFloat = 1.001,
    veto: NonNegativeFloat = 1e-4,
) -> Tensor:
    """No credit for turns with a sampler/trainer mismatch, where the trainer's probabilities differ from the sampler's.

    A turn keeps its credit if the geometric mean of pi / pi_rollout over its tokens is within [low, high] and no token's ratio is
    below `veto`.
    """
    sampled = torch.zeros_like(batch.columns["policy.logprobs"])
    for i, (row, _) in enumerate(batch.rows):
        sampled[i, : len(row)] = torch.from_numpy(row.column("sampled")).to(sampled.device)
    # recorded text was not sampled: its log-probs are NaN, and count as a ratio of 1
    log_ratio = torch.where(batch.mask & ~sampled.isnan(), batch.columns["policy.logprobs"] - sampled, 0.0)
    mean = (turn_sums(log_ratio, batch.mask) / turn_sums(torch.ones_like(log_ratio), batch.mask).clamp(min=1)).exp()
    # one token that the trainer finds nearly impossible hardly moves the mean of a long turn
    vetoed = turn_sums((log_ratio.exp() < veto).float(), batch.mask) > 0
    matched = (mean >= low) & (mean <= high) & ~vetoed  # (B, N)
    if run is not None:
        run.log("mismatched", 1 - float(matched[turn_counts(batch)].float().mean()))
    return a * over_turns(matched.to(a.dtype), batch.mask)
