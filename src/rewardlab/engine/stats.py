"""Statistics of an update, for the log. They cannot affect training."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Batch, Outputs

from .collate import micro_batches
from .distributed import all_gather, world_size

FAR = math.log(1.2)
"""A ratio beyond 1.2 or below 1/1.2 counts as far from 1."""


class Stats:
    """Sums over micro-batches of losses, and of what is logged per token."""

    def __init__(self) -> None:
        self.losses: dict[str, float] = defaultdict(float)
        self.sums: dict[str, float] = defaultdict(float)
        self.tokens = 0

    @torch.no_grad()
    def add_mismatch(self, sampler: Tensor, trainer: Tensor, where: Tensor) -> None:
        """Count the decisions `where` (B, T) whose probability differs by over 20% between sampler and trainer."""
        far = (trainer - sampler).abs() > FAR
        self.sums["mismatch_far"] += float((far & where).sum())

    @torch.no_grad()
    def add(self, losses: dict[str, Tensor], out: Outputs, batch: Batch) -> None:
        for name, loss in losses.items():
            self.losses[name] += float(loss)
        mask = batch.mask
        self.tokens += int(mask.sum())
        if out.entropy is not None:
            self.sums["entropy"] += float(out.entropy[mask].sum())
        if out.logprobs is not None:
            new, old = out.logprobs[mask], batch.old[mask]
            # without recorded old log-probs there is no drift to report; one NaN would spoil the sum
            if not bool(old.isnan().any()):
                self.sums["drift"] += float(_k3(old - new).sum())
                self.sums["ratio_far"] += float(((new - old).abs() > FAR).sum())
            if "ref" in batch.columns:
                self.sums["kl"] += float(_k3(batch.ref[mask] - new).sum())

    def all_reduced(self) -> Stats:
        """The sums over all ranks."""
        if world_size() == 1:
            return self
        merged = Stats()
        # all_gather and not all_reduce: ranks may hold different keys, depending on the rows they had
        for losses, sums, tokens in all_gather((dict(self.losses), dict(self.sums), self.tokens)):
            for name, value in losses.items():
                merged.losses[name] += value
            for name, value in sums.items():
                merged.sums[name] += value
            merged.tokens += tokens
        return merged

    def means(self) -> dict[str, float]:
        """The loss, its terms if there are several, and every other statistic as a mean per decision."""
        losses = {f"loss/{k}": v for k, v in self.losses.items()} if len(self.losses) > 1 else {}
        # losses are already weighted sums; only the per-token sums are divided
        means = {k: v / max(1, self.tokens) for k, v in self.sums.items()}
        return {"loss": sum(self.losses.values())} | losses | means


def mean_of(metrics: list[dict[str, float]]) -> dict[str, float]:
    """The mean of each metric over the optimiser steps that report it."""
    values: dict[str, list[float]] = defaultdict(list)
    for step_metrics in metrics:
        for name, value in step_metrics.items():
            values[name].append(value)
    return {name: sum(reported) / len(reported) for name, reported in values.items()}


def _k3(log_ratio: Tensor) -> Tensor:
    """Schulman's k3 estimate of KL(new || other), from log(other / new) at tokens sampled from `new`: never negative."""
    return log_ratio.exp() - log_ratio - 1


EVALUATED_ROWS = 32
"""Rollouts of a recorded step whose log-probs and entropy are computed again: all of them would cost a third of a training step."""


@torch.no_grad()
def after_update(model: Any, batch: Batch, micro_tokens: int) -> dict[str, Tensor]:
    """logprobs and entropy (B, T) of the batch's first EVALUATED_ROWS rows under the updated weights, NaN elsewhere."""
    first = batch[torch.arange(min(EVALUATED_ROWS, len(batch)))]
    tables: dict[str, Tensor] = {}
    for rows in micro_batches(first, micro_tokens, "row"):
        for name, part in model.evaluate(first[rows], ("logprobs", "entropy")).tensors().items():
            # a model may return more outputs than it was asked for
            if name in ("logprobs", "entropy"):
                tables.setdefault(name, part.new_full(batch.mask.shape, math.nan))[rows, : part.shape[1]] = part
    return {name: table.masked_fill(~batch.mask, math.nan) for name, table in tables.items()}
