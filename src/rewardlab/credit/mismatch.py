"""Correction for a sampler whose probabilities differ from the trainer's, as those of another engine do."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.settings.domain import PositiveFloat


def sampled_logprobs(batch: Batch) -> Tensor:
    """(B, T) log-probs of the distribution that each token was sampled from; NaN where that was not recorded."""
    table = torch.full(batch.ids.shape[:2], torch.nan)
    for i, (row, _) in enumerate(batch.rows):
        table[i, : len(row)] = torch.from_numpy(row.column("sampled"))
    return table.to(batch.mask.device)


@credit(needs=("policy.logprobs",))
def weigh_mismatch(
    a: Tensor, batch: Batch, run: Run, *, limit: PositiveFloat = 2.0, of: Literal["token", "row"] = "token",
    above: Literal["truncate", "mask"] = "truncate",
) -> Tensor:  # fmt: skip
    """Advantages times w = pi_trainer / pi_sampler, the probabilities of what was sampled under the weights before the update.

    of: the ratio of each token, or of the whole reply (the product over its tokens).  above: what becomes of a ratio above `limit`:
    it is truncated to it (truncated importance sampling, Yao et al. 2025, "Your efficient RL framework secretly brings you
    off-policy RL training"), or 0 (masked importance sampling). As TRL's vllm_importance_sampling_mode token_truncate, token_mask,
    sequence_truncate and sequence_mask. Logs the mean size of the log-ratio as `mismatch`, the share above the limit as
    `mismatch_above`. Tokens without a record of the sampler count as a ratio of 1.
    """
    sampled = sampled_logprobs(batch)
    known = batch.mask & ~sampled.isnan()
    log_ratio = torch.where(known, batch.columns["policy.logprobs"] - sampled, 0.0)
    tokens = known.sum().clamp(min=1)
    run.log("mismatch", float(log_ratio.abs().sum() / tokens))
    if of == "row":
        log_ratio = log_ratio.sum(1, keepdim=True).expand_as(log_ratio)
    # a product over a long reply may leave the range of numbers; far above any limit nothing is lost
    ratio = log_ratio.clamp(max=20.0).exp()
    over = ratio > limit
    run.log("mismatch_above", float((over & known).sum() / tokens))
    return a * (torch.where(over, 0.0, ratio) if above == "mask" else ratio.clamp(max=limit))
