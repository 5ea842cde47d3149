"""Credit from the shape of a search tree."""

from __future__ import annotations

import torch
from torch import Tensor

from ..core import Batch, Run, credit
from ..kit.tree import quality, spans


@credit
def step_quality(a: Tensor, batch: Batch, run: Run, *, right: float = 0.5) -> Tensor:
    """At the end of each step, how far it has come towards a right answer (`kit.tree.quality`); 0 elsewhere.

    right: a row is right if its reward is above this.
    """
    good, found = (a.sum(1) > right).tolist(), torch.zeros_like(a)
    rows = [t for t, _ in batch.rows]
    for g in range(batch.groups):
        members = (batch.group == g).nonzero().squeeze(1).tolist()
        value = quality([rows[i].path for i in members], [good[i] for i in members])
        for i in members:
            for node, _, end in spans(rows[i]):
                found[i, end - 1] = value.get(node, 0.0)
    return found
