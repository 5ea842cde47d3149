"""Conversions between rows of unequal length, right-padded tables (B, T), and one flat list of tokens (n,)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from rewardlab.util.device import moved

SCORE_TOKENS = 16384
"""Padded tokens in one pass without gradient."""


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


def by_tokens(lengths: Sequence[int], budget: int, groups: Sequence[int] = ()) -> list[list[int]]:
    """Indices, longest first, in parts of at most `budget` padded tokens.

    groups: of each row, which rows begin as it does: these stay neighbours, and in one part where they fit into one.
    """
    groups = groups or range(len(lengths))
    longest, size = dict[int, int](), Counter(groups)
    for n, group in zip(lengths, groups, strict=True):
        longest[group] = max(longest.get(group, 0), n)
    parts: list[list[int]] = []
    # longest first: the first row of a part is its width, so the padded size of a part is known
    for i in sorted(range(len(lengths)), key=lambda i: (-longest[groups[i]], groups[i], -lengths[i])):
        begins = not parts or groups[parts[-1][-1]] != groups[i]
        rows = size[groups[i]] if begins and size[groups[i]] * longest[groups[i]] <= budget else 1
        if not parts or (len(parts[-1]) + rows) * lengths[parts[-1][0]] > budget:
            parts.append([])
        parts[-1].append(i)
    return parts


def numbered(keys: Iterable[Hashable]) -> list[int]:
    """Of each key a number, the same for equal ones."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(key, len(known)) for key in keys]
