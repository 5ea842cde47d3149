"""Credit relative to what was thought of a problem before it was answered."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rewardlab.core import Batch, Run, credit
from rewardlab.core.domain import PositiveFloat
from rewardlab.data.priors import PRIOR, shrunk


@credit
def subtract_shrunk_mean(a: Tensor, batch: Batch, run: Run, *, z: PositiveFloat = 1.0) -> Tensor:
    """Subtract from each event the mean of the group's events, drawn to the prior in its problem's meta["prior"] (`shrunk`).

    For outcome rewards from 0 to 1. A group without a prior has its mean as its baseline.
    """
    return _less_baseline(a, batch, lambda earned, prior: shrunk(earned, prior, z))


@credit
def subtract_prior(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Subtract from each event the prior in its problem's meta["prior"], whatever the replies earned; without one, their mean."""
    return _less_baseline(a, batch, lambda earned, prior: sum(earned) / len(earned) if prior is None else prior)


def _less_baseline(a: Tensor, batch: Batch, baseline: Callable[[list[float], float | None], float]) -> Tensor:
    out = torch.zeros_like(a)
    for g in range(batch.groups):
        here = batch.rewarded & (batch.group == g)[:, None]
        if bool(here.any()):
            problem = batch.rows[int((batch.group == g).nonzero()[0])][0].problem
            out = torch.where(here, a - baseline(a[here].tolist(), problem.meta.get(PRIOR)), out)
    return out
