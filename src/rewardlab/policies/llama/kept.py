"""What the lean policy keeps of a decoder's cache (`policies/kept.py`): of each layer (2, texts, Hkv, T, d), keys and values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from rewardlab.policies.kept import CHUNK, Block, Found, Kept
from rewardlab.util.device import moved


def keep_copy(kept: Kept, cache: Sequence[Tensor], slots: np.ndarray, texts: Sequence[np.ndarray], first: int, room: int) -> int:
    """Keep a copy of what `cache` holds in these slots, of each layer (2, slots, Hkv, span, d), as many as there is room for.

    texts: the ids that were computed in each.  first: the first row of them.  room: bytes.  Returns the bytes that it takes.
    """
    width = max(map(len, texts))
    bytes_of_slot = sum(table[:, :1, :, :width].numel() * table.element_size() for table in cache)
    some = room // bytes_of_slot if width >= CHUNK else 0
    if not some:
        return 0
    index = moved(slots[:some], cache[0].device)
    block = Block(texts[:some], [layer[:, :, :, :width][:, index] for layer in cache], first)
    kept.add(block)
    return block.bytes


def keep_whole(kept: Kept, cache: Sequence[Tensor], texts: Sequence[np.ndarray], first: int, room: int) -> None:
    """Keep a whole cache that nobody else uses any more: without a copy, if there is room for it.

    texts: of every slot; empty where there is none.
    """
    block = Block(texts, list(cache), first)
    if block.bytes <= room:
        kept.add(block)
    else:
        slots = [slot for slot, text in enumerate(texts) if len(text)]
        keep_copy(kept, cache, np.array(slots), [texts[slot] for slot in slots], first, room)


def copied_to(cache: Sequence[Tensor], found: Sequence[tuple[Found, int]]) -> None:
    """Copy kept keys and values into slots of a cache: (what was found, the slot)."""
    for block in {id(one.block): one.block for one, _ in found}.values():
        own = [(one, slot) for one, slot in found if one.block is block]
        width = max(one.length for one, _ in own)
        pairs = moved(np.array([(one.row, slot) for one, slot in own]), cache[0].device)
        rows, slots = pairs.unbind(1)
        for table, kept in zip(cache, block.tables, strict=True):
            # what lies beyond the length that was found is overwritten, or hidden
            table[:, slots, :, :width] = kept[:, :, :, :width][:, rows].to(table)
