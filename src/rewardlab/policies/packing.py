"""Conversions between rows of unequal length, right-padded tables (B, T), and one flat list of tokens (n,)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rewardlab.util.device import moved


def unflatten(x: Tensor, where: Tensor | None, rows: int, width: int) -> Tensor:
    """Flat values (n, ...) as a (rows, width, ...) table; `where` (n,): indices in the flattened table, None if full."""
    return x.view(rows, width, *x.shape[1:]) if where is None else scatter(x, where, rows, width)


def scatter(x: Tensor, place: Tensor, rows: int, width: int) -> Tensor:
    """Flat values (n, ...) put at the indices `place` (n,) of a flattened (rows, width, ...) table of zeros."""
    # index_copy, out of place, is differentiable; assigning to a table would record an in-place write
    table = x.new_zeros((rows * width, *x.shape[1:])).index_copy(0, place, x)
    return table.view(rows, width, *x.shape[1:])


def rounded(n: int) -> int:
    """n, or up to 3% more: at most 32 sizes from one power of two to the next.

    Libraries compile and keep a kernel for each size of a matrix product; sizes that never come again fill the memory with them.
    """
    # six bits of the length decide: the grain is a 64th to a 32nd of n
    grain = 1 << max(n.bit_length() - 6, 0)
    return -(-n // grain) * grain


def pad(rows: list[np.ndarray], device: torch.device) -> tuple[Tensor, Tensor]:
    """Rows of ids as a (B, T) table of zeros on the right, and their lengths (B,)."""
    length = torch.tensor([len(r) for r in rows])
    ids = torch.zeros(len(rows), int(length.max()), dtype=torch.long)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.from_numpy(row)
    return moved(ids, device), moved(length, device)
