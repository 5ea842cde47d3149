"""Statistics of an update, for the log. They cannot affect training."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from rewardlab.core import Batch, Outputs
from rewardlab.engine.collate import micro_batches
from rewardlab.engine.distributed import all_gather, world_size
from rewardlab.util.device import moved

FAR = math.log(1.2)
"""A ratio beyond 1.2 or below 1/1.2 counts as far from 1."""


KNOWN = "known"
"""Micro-batches whose old log-probs are all recorded."""

CHOSEN, REJECTED = "chosen", "rejected"
"""Tags of recorded replies that are to be told apart (`rollouts/recorded.py`)."""
PER = {"preferred": "pairs", "margin": "pairs", "chosen_gain": "chosen rows", "rejected_gain": "rejected rows"}
"""What a statistic of pairs is the mean over; all others are over decisions."""


class Stats:
    """Sums over micro-batches of losses, and of what is logged per token. They stay on the device until they are read at once."""

    def __init__(self) -> None:
        self.losses: dict[str, Tensor] = {}
        self.sums: dict[str, Tensor] = {}
        self.tokens: Tensor | None = None

    @torch.no_grad()
    def add_mismatch(self, sampler: Tensor, trainer: Tensor, where: Tensor) -> None:
        """Count the decisions `where` (B, T) whose probability differs by over 20% between sampler and trainer."""
        far = (trainer - sampler).abs() > FAR
        _add(self.sums, "mismatch_far", (far & where).sum())

    @torch.no_grad()
    def add(self, losses: dict[str, Tensor], out: Outputs, batch: Batch) -> None:
        for name, loss in losses.items():
            _add(self.losses, name, loss)
        mask = batch.mask
        self.tokens = mask.sum() if self.tokens is None else self.tokens + mask.sum()

        def total(x: Tensor) -> Tensor:
            # not x[mask]: how many there are is what a GPU would have to be waited for
            return torch.where(mask, x, 0.0).sum()

        if out.entropy is not None:
            _add(self.sums, "entropy", total(out.entropy))
        if out.logprobs is not None:
            new, old = out.logprobs, batch.old
            # without recorded old log-probs there is no drift to report; one NaN would spoil the sum
            known = ~(old.isnan() & mask).any()
            _add(self.sums, KNOWN, known)
            _add(self.sums, "drift", torch.where(known, total(_k3(old - new)), 0.0))
            _add(self.sums, "ratio_far", torch.where(known, ((new - old).abs() > FAR).logical_and(mask).sum(), 0))
            if "ref" in batch.columns:
                _add(self.sums, "kl", total(_k3(batch.ref - new)))
        self._add_pairs(out, batch)

    def _add_pairs(self, out: Outputs, batch: Batch) -> None:
        """How recorded replies of both kinds are told apart, by what the loss compares: a value at their end, or their likelihood.

        preferred: the share of pairs whose chosen reply has more, ties half.  margin: by how much.  Likelihood is log pi/ref of the
        reply (nats), DPO's implicit reward over beta, and without a reference the mean log-prob of its tokens, SimPO's.
        chosen_gain, rejected_gain: log pi/ref of the replies of a kind; where both fall, only their difference is learnt.
        """
        tags = [t.tag for t, _ in batch.rows]
        ref = batch.columns.get("ref")
        if not {CHOSEN, REJECTED} & {*tags} or (out.value is None and out.logprobs is None):
            return
        told = _told(out, batch)
        if out.value is None and ref is not None:
            for tag in {CHOSEN, REJECTED} & {*tags}:
                _add(self.sums, f"{tag}_gain", _at(told, [i for i, other in enumerate(tags) if other == tag]).sum())
                _add(self.sums, f"{tag} rows", told.new_full((), tags.count(tag)))
        rows = [t for t, _ in batch.rows]
        one = [tags[i : i + 2] == [CHOSEN, REJECTED] and rows[i].problem is rows[i + 1].problem for i in range(len(rows) - 1)]
        pairs = [i for i, found in enumerate(one) if found]
        if pairs:
            gap = _at(told, pairs) - _at(told, [i + 1 for i in pairs])
            _add(self.sums, "margin", gap.sum())
            _add(self.sums, "preferred", ((gap.sign() + 1) / 2).sum())
            _add(self.sums, "pairs", told.new_full((), len(pairs)))

    def read(self) -> Totals:
        """The numbers, with a single wait for a GPU."""
        if self.tokens is None:
            return Totals({}, {}, 0)
        values = [x.double() for x in (*self.losses.values(), *self.sums.values(), self.tokens)]
        numbers = iter(torch.stack([x.to(self.tokens.device) for x in values]).tolist())
        losses, sums = ({name: next(numbers) for name in of} for of in (self.losses, self.sums))
        if not sums.pop(KNOWN, 1.0):
            sums = {name: value for name, value in sums.items() if name not in ("drift", "ratio_far")}
        return Totals(losses, sums, int(next(numbers)))

    def all_reduced(self) -> Totals:
        """The numbers, summed over all ranks."""
        own = self.read()
        if world_size() == 1:
            return own
        losses, sums = defaultdict[str, float](float), defaultdict[str, float](float)
        # all_gather and not all_reduce: ranks may hold different keys, depending on the rows they had
        ranks = all_gather(own)
        for of_rank in ranks:
            for name, value in of_rank.losses.items():
                losses[name] += value
            for name, value in of_rank.sums.items():
                sums[name] += value
        return Totals(losses, sums, sum(of_rank.tokens for of_rank in ranks))

    def means(self) -> dict[str, float]:
        return self.read().means()


class Totals(NamedTuple):
    """Losses and sums by name, and how many tokens they are over."""

    losses: dict[str, float]
    sums: dict[str, float]
    tokens: int

    def means(self) -> dict[str, float]:
        """The loss, its terms if there are several, and every other statistic as a mean per decision, or per pair (`PER`)."""
        losses = {f"loss/{k}": v for k, v in self.losses.items()} if len(self.losses) > 1 else {}
        # losses are already weighted sums; only the sums over decisions, or over pairs, are divided
        counted = {k: v for k, v in self.sums.items() if k not in PER.values()}
        means = {k: v / max(1, self.sums[PER[k]] if k in PER else self.tokens) for k, v in counted.items()}
        return {"loss": sum(self.losses.values())} | losses | means


def _add(sums: dict[str, Tensor], name: str, value: Tensor) -> None:
    # float64, as Python adds: many micro-batches are summed
    sums[name] = value.double() + sums.get(name, 0.0)


def mean_of(metrics: list[dict[str, float]]) -> dict[str, float]:
    """The mean of each metric over the optimiser steps that report it."""
    values: dict[str, list[float]] = defaultdict(list)
    for step_metrics in metrics:
        for name, value in step_metrics.items():
            values[name].append(value)
    return {name: sum(reported) / len(reported) for name, reported in values.items()}


def _told(out: Outputs, batch: Batch) -> Tensor:
    """(B,) what a loss on pairs compares of each row."""
    if out.value is not None:
        return out.value.gather(1, (batch.length - 1)[:, None]).squeeze(1).double()
    ref = batch.columns.get("ref")
    assert out.logprobs is not None
    said = torch.where(batch.mask, out.logprobs if ref is None else out.logprobs - ref, 0.0).double().sum(1)
    return said / batch.mask.sum(1).clamp(min=1) if ref is None else said


def _at(numbers: Tensor, places: Sequence[int]) -> Tensor:
    """The numbers at these places. A list as an index would be sent to a GPU, for which each micro-batch would wait."""
    return torch.stack([numbers[i] for i in places])


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
        at = moved(rows, batch.ids.device)
        for name, part in model.evaluate(first[rows], ("logprobs", "entropy")).tensors().items():
            # a model may return more outputs than it was asked for
            if name in ("logprobs", "entropy"):
                tables.setdefault(name, part.new_full(batch.mask.shape, math.nan))[at, : part.shape[1]] = part
    return {name: table.masked_fill(~batch.mask, math.nan) for name, table in tables.items()}
