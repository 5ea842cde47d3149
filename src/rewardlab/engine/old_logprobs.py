"""Old log-probs in low precision, or of another engine: the trainer's own, to avoid rounding differences to the sampler's.

    ratio = exp(new - old),   old = what the trainer computes, before the update, for tokens sampled with the same weights

Sampler and trainer compute the same products in another order (another batch size, a cache of keys and values). In bfloat16 that
moves a log-prob by up to a tenth, so an importance ratio that should be exactly 1 would be clipped. In float32 the difference is
negligible and the sampler's log-probs are kept.

Several optimiser steps on a batch need `old` before the first of them: `recompute_old` runs a forward pass. A single optimiser
step has it for free, from the forward pass that it computes gradients from: `use_trainer_old`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, uncounted
from rewardlab.engine.collate import micro_batches, outputs_of
from rewardlab.engine.learner import LearnerState


def rows_to_recompute(learner: LearnerState, batch: Batch, run: Run) -> Tensor | None:
    """(B,) bool: rows whose `old` the trainer must recompute; None if there are none.

    Those are rows in which every decision was sampled by this model, in this training step, with the weights it has now, where it
    computes in another format than float32, another engine samples for it, or a temperature's record may have been cut to a
    nucleus. Tokens that older weights or another model sampled keep their recorded `old`.
    """
    if not (_rounds(learner.model) or learner.temperature != 1.0) or "old" not in learner.recipe.needs:
        return None
    if not learner.unchanged_since_sampling(run.step) or not batch.rows:
        return None
    # the training steps whose weights sampled a row; empty turns decided nothing
    steps = [{t.step for t in row.turns if t.author == learner.model.name and len(t.ids)} for row, _ in batch.rows]
    rows = torch.tensor([row_steps == {run.step} for row_steps in steps], dtype=torch.bool, device=batch.ids.device)
    return rows if bool(rows.any()) else None


def _rounds(model: Any) -> bool:
    """Whether what samples for a model rounds otherwise than what trains it."""
    return getattr(model, "sampler", None) is not None or getattr(model, "dtype", torch.float32) != torch.float32


def recompute_old(learner: LearnerState, batch: Batch, rows: Tensor, micro_tokens: int) -> Batch:
    """The batch with `old` recomputed in `rows` (B,) by a forward pass without gradient."""
    # not counted: a method's token budget must not depend on the number format
    with uncounted(learner.model):
        outputs = outputs_of(learner.model, batch, micro_batches(batch, micro_tokens, "row"), ("logprobs",), ())
    return use_trainer_old(batch, outputs["logprobs"], rows)


def use_trainer_old(batch: Batch, logprobs: Tensor, rows: Tensor) -> Batch:
    """The batch with the trainer's `logprobs` (B, T), detached, as `old` of all decisions in `rows` (B,).

    `batch` itself, which goes into the log, keeps what the sampler recorded.
    """
    # detached: with a gradient through `old` the ratio would be 1 and its gradient 0
    return replace(batch, old=torch.where(batch.mask & rows[:, None], logprobs.detach(), batch.old))
