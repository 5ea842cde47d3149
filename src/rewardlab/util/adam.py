"""Adam's steps for a few numbers that a method learns beside its models, such as weights of rewards or of domains."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def adam_step(moments: dict[str, Any], gradient: Tensor, betas: tuple[float, float] = (0.9, 0.99)) -> Tensor:
    """(n,) Adam's step for a gradient (n,) of a few numbers, before the learning rate: each entry is about 1 long at first.

    moments: kept between steps, empty at first; plain data, so that a run's memory can hold it.  Kingma and Ba 2015
    """
    share, new = torch.tensor(betas)[:, None], torch.stack((gradient, gradient.square()))
    moments["count"] = moments.get("count", 0) + 1
    moments["values"] = share * moments.get("values", torch.zeros_like(new)) + (1 - share) * new
    # divided by how much of the averages is filled: they begin at 0
    mean, square = moments["values"] / (1 - share ** moments["count"])
    return mean / square.sqrt().clamp(min=1e-12)
