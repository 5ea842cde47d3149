"""Credit relative to the group: how much better a reply is than the other replies to the same problem.

Statistics run over reward events (`batch.rewarded`), so an outcome reward (one event per row) and process rewards (one per
step) share the same functions. Rows without a verdict have no event: they are left out of every statistic and get no credit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.settings.domain import PositiveFloat, PositiveInt


def group_sums(x: Tensor, batch: Batch) -> Tensor:
    """(G,) sums of x (B, T) over each group."""
    return x.new_zeros(batch.groups).index_add(0, batch.group, x.sum(1))


def with_verdict(batch: Batch) -> Tensor:
    """(B, T) decided positions of rows that have a verdict; of all rows if no row has a reward."""
    # without any reward, as in imitation, every row counts
    verdict = batch.rewarded.any(1, keepdim=True)  # (B, 1)
    return batch.mask & (verdict | ~verdict.any())


@credit(compares_rows=True)
def center(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract the mean of the group's reward events from each event."""
    # clamped, because a group whose rows all lack a verdict has no event
    count = group_sums(batch.rewarded.float(), batch).clamp(min=1)  # (G,)
    # where, not a product: NaN * 0 is NaN
    mean = group_sums(torch.where(batch.rewarded, a, 0.0), batch) / count
    return torch.where(batch.rewarded, a - mean[batch.group, None], 0.0)


@credit(compares_rows=True)
def scale_by_std(a: Tensor, batch: Batch, run: Run, *, eps: PositiveFloat = 1e-4) -> Tensor:
    """Divide by the standard deviation (unbiased) of the group's events, plus eps.

    eps: if all replies of a group earn the same, the standard deviation is 0; without eps it would be 0 / 0.
    """
    count = group_sums(batch.rewarded.float(), batch)
    mean = group_sums(torch.where(batch.rewarded, a, 0.0), batch) / count.clamp(min=1)
    # centred again, so that the part does not depend on whether `center` ran before it
    deviation = torch.where(batch.rewarded, a - mean[batch.group, None], 0.0)
    std = (group_sums(deviation.square(), batch) / (count - 1).clamp(min=1)).sqrt()
    return a / (std[batch.group, None] + eps)


@credit(compares_rows=True)
def leave_one_out(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract the mean event of the group's other rows; a row without any others gets no credit.

    Kool et al. 2019; Ahmadian et al. 2024, arXiv:2402.14740
    """
    rewarded = batch.rewarded.float()
    count, total = rewarded.sum(1), torch.where(batch.rewarded, a, 0.0).sum(1)
    # the group's sum minus the row's own, so the mean of the others takes no loop over rows
    others = group_sums(rewarded, batch)[batch.group] - count
    baseline = (group_sums(torch.where(batch.rewarded, a, 0.0), batch)[batch.group] - total) / others.clamp(min=1)
    return torch.where(batch.rewarded & (others > 0)[:, None], a - baseline[:, None], 0.0)


@credit
def whiten(a: Tensor, batch: Batch, run: Run, *, eps: PositiveFloat = 1e-8) -> Tensor:
    """Zero mean and unit variance over the decided positions of all rows that have a verdict."""
    where = with_verdict(batch)
    chosen = a[where]
    # one number has no variance: var() would be NaN
    if chosen.numel() < 2:
        return a
    # eps is under the root, as in most PPO code; `scale_by_std` adds it after the root, as in GRPO
    return torch.where(where, (a - chosen.mean()) / (chosen.var() + eps).sqrt(), 0.0)


@credit
def whiten_events(a: Tensor, batch: Batch, run: Run, *, eps: PositiveFloat = 1e-8) -> Tensor:
    """Zero mean and unit variance over the events of the whole batch: every reply counts once, whatever its length."""
    chosen = a[batch.rewarded]
    if chosen.numel() < 2:
        return a
    return torch.where(batch.rewarded, (a - chosen.mean()) / (chosen.var() + eps).sqrt(), 0.0)


@credit
def center_batch(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract the mean of the events of the whole batch from each: one baseline for all prompts."""
    count = batch.rewarded.sum().clamp(min=1)
    return torch.where(batch.rewarded, a - torch.where(batch.rewarded, a, 0.0).sum() / count, 0.0)


@credit
def subtract_mean_of_others(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract from every event the mean over the group's other rows, where each row counts once, with the mean of its events.

    `leave_one_out` counts every event once, so rows with many steps weigh more there. A row without any others gets no credit.
    """
    count = batch.rewarded.sum(1)
    mean = torch.where(batch.rewarded, a, 0.0).sum(1) / count.clamp(min=1)
    has_event = (count > 0).float()  # (B,)
    others = group_sums(has_event[:, None], batch)[batch.group] - has_event
    baseline = (group_sums(mean[:, None], batch)[batch.group] - mean) / others.clamp(min=1)
    return torch.where(batch.rewarded & (others > 0)[:, None], a - baseline[:, None], 0.0)


@credit
def subtract_mean_return(a: Tensor, batch: Batch, run: Run, *, length: PositiveInt | None = None) -> Tensor:
    """Subtract from every decision the mean return per token of the group's other rows:

    b_i = 1/(n - 1) sum_{j != i} 1/length sum_t G_jt,   G the credit that came in, as after `to_go`

    The baseline of a row is one number, subtracted once from each return and not from each reward: however many steps a row has,
    its own length changes no advantage. length: the most tokens in a reply (None: the run's), a constant, so that long rows weigh
    more in the baseline of others. Rows without a verdict get no credit, as does a row without any others.
    Cheng et al. 2025, arXiv:2504.15275
    """
    # rows with a verdict; group_sums wants two dimensions
    judged = batch.rewarded.any(1, keepdim=True)  # (B, 1)
    mean = torch.where(batch.mask & judged, a, 0.0).sum(1, keepdim=True) / (run.max_new if length is None else length)
    others = (group_sums(judged.float(), batch)[batch.group] - judged[:, 0].float())[:, None]
    baseline = (group_sums(mean, batch)[batch.group][:, None] - mean) / others.clamp(min=1)
    return torch.where(batch.mask & judged & (others > 0), a - baseline, 0.0)


@credit(compares_rows=True)
def subtract_mean_over_tokens(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract the mean over all decisions of the group's judged rows, after `to_go`:  b = sum_i l_i r_i / sum_i l_i for outcomes.

    With squared norms of the rows' gradients that grow as their lengths l_i, no constant makes the gradient vary less. Rows without
    a verdict get no credit.  Hao et al. 2025, arXiv:2505.23585
    """
    where = batch.mask & batch.rewarded.any(1, keepdim=True)
    count = group_sums(where.float(), batch).clamp(min=1)  # (G,)
    mean = group_sums(torch.where(where, a, 0.0), batch) / count
    return torch.where(where, a - mean[batch.group, None], 0.0)
