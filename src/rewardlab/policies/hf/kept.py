"""What `generate` is given of prompts of which an earlier call has computed the beginning, and what is kept of its cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rewardlab.policies.kept import Block, Found, Kept
from rewardlab.policies.replies import Replies
from rewardlab.util.device import moved

LEAST = 0.5
"""The share of a prompt that must be kept. All rows of a call begin in the same column: what some have more of than others is
padding for these, so that a call is at most half as wide again as its longest prompt."""


class Given(NamedTuple):
    """The prompts of a call of `generate`: ids and mask (rows, width), real tokens where the mask is 1.

    first: so many columns hold kept beginnings, aligned on the right; the others hold the rests of prompts, aligned likewise.
    """

    ids: Tensor
    mask: Tensor
    first: int = 0

    def computed(self, replies: Replies, rows: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The texts that a cache holds once replies were sampled, and (rows, T) the columns of their tokens.

        The last token of a reply was sampled and not computed.
        """
        prompts = [np.flatnonzero(row) for row in self.mask.numpy()]
        counts = np.maximum(replies.count[rows] - 1, 0)
        places = [np.concatenate((p, self.ids.shape[1] + np.arange(n))) for p, n in zip(prompts, counts, strict=True)]
        read = [ids[p] for ids, p in zip(self.ids.numpy(), prompts, strict=True)]
        texts = [np.concatenate((p, replies.ids[row, :n])) for p, row, n in zip(read, rows, counts, strict=True)]
        table = np.zeros((len(rows), max(map(len, places))), np.int64)
        for row, place in zip(table, places, strict=True):
            row[: len(place)] = place
        return texts, table


def laid_out(prompts: Sequence[np.ndarray], found: Sequence[Found] = ()) -> Given:
    kept = [one.length for one in found] or [0] * len(prompts)
    first, rest = max(kept), max(len(p) - n for p, n in zip(prompts, kept, strict=True))
    ids, mask = torch.zeros(2, len(prompts), first + rest, dtype=torch.long)
    for row, (p, n) in enumerate(zip(prompts, kept, strict=True)):
        for part, end in ((p[:n], first), (p[n:], first + rest)):
            ids[row, end - len(part) : end], mask[row, end - len(part) : end] = torch.from_numpy(part), 1
    return Given(ids, mask, first)


def findable(kept: Kept, prompt: np.ndarray) -> Found | None:
    """What is kept of a prompt but for its last token, which is computed in any case, if that is worth it."""
    found = kept.find(prompt[:-1])
    return None if found is None or found.length < LEAST * len(prompt) else found


def empty_cache(model: Any, most: int | None) -> Any:
    """A cache for a transformers model.  most: the tokens that it holds at most, all at once; None: it grows."""
    from transformers import DynamicCache, StaticCache

    return DynamicCache(config=model.config) if most is None else StaticCache(config=model.config, max_cache_len=most)


def fill(cache: Any, found: Sequence[Found], width: int) -> None:
    """Put kept keys and values of each row into an empty cache, aligned on the right in its first `width` columns."""
    blocks = {id(one.block): one.block for one in found}.values()
    parts = [([i for i, one in enumerate(found) if one.block is block], block) for block in blocks]
    places = [_places([found[i] for i in rows], width) for rows, _ in parts]
    order = moved(np.argsort(np.concatenate([rows for rows, _ in parts])), parts[0][1].tables[0].device)
    for layer in range(len(parts[0][1].tables) // 2):
        keys, values = (
            torch.cat([_taken(block.tables[2 * layer + which], *place) for (_, block), place in zip(parts, places, strict=True)])
            for which in (0, 1)
        )
        cache.update(keys[order], values[order], layer)


def _places(found: Sequence[Found], width: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) of a block, and (rows, width) the columns there; what is to the left of a row's tokens is any, and hidden."""
    columns = np.zeros((len(found), width), np.int64)
    for row, one in zip(columns, found, strict=True):
        assert one.block.columns is not None
        row[width - one.length :] = one.block.columns[one.row, : one.length]
    return np.array([one.row for one in found]), columns


def _taken(table: Tensor, rows: np.ndarray, columns: np.ndarray) -> Tensor:
    """(rows, Hkv, T, d) of a table (texts, Hkv, columns, d)."""
    chosen, at = table[moved(rows, table.device)], moved(columns, table.device)
    return chosen.gather(2, at[:, None, :, None].expand(-1, chosen.shape[1], -1, chosen.shape[3]))


def keep(kept: Kept, given: Given, cache: Any, replies: Replies, rows: np.ndarray) -> None:
    """Keep what a call of `generate` for these rows has put into its cache, of as many rows as there is room for."""
    tables = [table for layer in cache.layers for table in (layer.keys, layer.values)]
    texts, columns = given.computed(replies, rows)
    size = sum(table.numel() * table.element_size() for table in tables)
    some = min(len(rows), kept.room * len(rows) // size)
    if some < len(rows):
        # a part of a table would keep the whole of it in memory
        tables = [table[:some].clone() for table in tables]
    if some > 0:
        kept.add(Block(texts[:some], tables, int(rows.min()), columns[:some]))
