"""What a model with a value head says of texts, outside of training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rewardlab.core import Batch, Trajectory

ROWS = 256
"""Rows of one forward pass."""


@torch.no_grad()
def values(model: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """(len,) for each row: the value of the text up to and including each position."""
    found: list[np.ndarray] = []
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        table = model.evaluate(_batch(part, model.device), ("value",)).value.cpu().numpy()
        found += [row[: len(t)] for row, t in zip(table, part, strict=True)]
    return found


def last_values(model: Any, rows: Sequence[Trajectory]) -> list[float]:
    """The value of each whole row."""
    return [float(v[-1]) for v in values(model, rows)]


def _batch(rows: Sequence[Trajectory], device: torch.device) -> Batch:
    length = torch.tensor([len(t) for t in rows])
    shape = (len(rows), int(length.max()))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, bool)
    for i, t in enumerate(rows):
        ids[i, : len(t)], mask[i, : len(t)] = t.ids, t.mask
    blank = torch.zeros(shape, device=device)
    read, decided = torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
    group = torch.arange(len(rows), device=device)
    return Batch(read, decided, length.to(device), blank, blank, blank.bool(), group)
