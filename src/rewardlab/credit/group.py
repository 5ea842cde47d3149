"""Credit relative to the group: how much better a reply is than the other replies to the same problem.

Statistics run over reward events (`batch.rewarded`), so an outcome reward (one event per row) and process rewards (one per
step) share the same functions. Rows without a verdict have no event: they enter no statistic and get no credit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit


def group_sums(x: Tensor, batch: Batch) -> Tensor:
    """(G,) sums of x (B, T) over each group."""
    return x.new_zeros(batch.groups).index_add(0, batch.group, x.sum(1))


def with_verdict(batch: Batch) -> Tensor:
    """(B, T) decided positions of rows that have a verdict; of all rows where there is no reward at all."""
    # without any reward, as in imitation, every row counts
    verdict = batch.rewarded.any(1, keepdim=True)
    return batch.mask & (verdict | ~verdict.any())


@credit
def center(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract the mean event of the group."""
    count = group_sums(batch.rewarded.float(), batch).clamp(min=1)
    mean = group_sums(torch.where(batch.rewarded, a, 0.0), batch) / count
    return torch.where(batch.rewarded, a - mean[batch.group, None], 0.0)


@credit
def scale_by_std(a: Tensor, batch: Batch, run: Run, *, eps: float = 1e-4) -> Tensor:
    """Divide by the standard deviation (unbiased) of the group's events, plus eps."""
    count = group_sums(batch.rewarded.float(), batch)
    mean = group_sums(torch.where(batch.rewarded, a, 0.0), batch) / count.clamp(min=1)
    off = torch.where(batch.rewarded, a - mean[batch.group, None], 0.0)
    std = (group_sums(off.square(), batch) / (count - 1).clamp(min=1)).sqrt()
    return a / (std[batch.group, None] + eps)


@credit
def leave_one_out(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract the mean event of the group's other rows; a row with no others gets no credit.

    Kool et al. 2019; Ahmadian et al. 2024, arXiv:2402.14740
    """
    rewarded = batch.rewarded.float()
    count, total = rewarded.sum(1), torch.where(batch.rewarded, a, 0.0).sum(1)
    others = group_sums(rewarded, batch)[batch.group] - count
    baseline = (group_sums(torch.where(batch.rewarded, a, 0.0), batch)[batch.group] - total) / others.clamp(min=1)
    return torch.where(batch.rewarded & (others > 0)[:, None], a - baseline[:, None], 0.0)


@credit
def whiten(a: Tensor, batch: Batch, run: Run, *, eps: float = 1e-8) -> Tensor:
    """Zero mean and unit variance over the decided positions of all rows that have a verdict."""
    where = with_verdict(batch)
    chosen = a[where]
    # one number has no variance
    if chosen.numel() < 2:
        return a
    return torch.where(where, (a - chosen.mean()) / (chosen.var() + eps).sqrt(), 0.0)


@credit
def whiten_events(a: Tensor, batch: Batch, run: Run, *, eps: float = 1e-8) -> Tensor:
    """Zero mean and unit variance over the events of the whole batch: every reply counts once, however long it is."""
    chosen = a[batch.rewarded]
    if chosen.numel() < 2:
        return a
    return torch.where(batch.rewarded, (a - chosen.mean()) / (chosen.var() + eps).sqrt(), 0.0)


@credit
def subtract_mean_of_others(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract from every event the mean over the group's other rows, each row counting once by its mean event.

    `leave_one_out` counts every event once instead, so that rows of many steps weigh more. A row with no others gets no credit.
    """
    count = batch.rewarded.sum(1)
    mean = torch.where(batch.rewarded, a, 0.0).sum(1) / count.clamp(min=1)
    rows = (count > 0).float()
    others = group_sums(rows[:, None], batch)[batch.group] - rows
    baseline = (group_sums(mean[:, None], batch)[batch.group] - mean) / others.clamp(min=1)
    return torch.where(batch.rewarded & (others > 0)[:, None], a - baseline[:, None], 0.0)
