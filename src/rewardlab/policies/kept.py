"""Keys and values that outlive a call of `extend`, so that a text which goes on is not computed again from its beginning.

In an episode of several turns, or a tree of steps, each call asks for replies to texts of which the call before has computed all
but the end: with 20 turns a policy would read the first of them 20 times. Within a policy's `keeping` they are kept, and a prompt
begins with the longest part that some kept text has too. How keys and values lie in memory is up to the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rewardlab.util.device import memory_of

CHUNK = 32
"""Tokens by which beginnings of texts are looked up, and the fewest that are worth being copied."""
SHARES = {"cpu": 0.125, "cuda": 0.25}
"""Of all memory of a device, what kept keys and values take at most: half by earlier calls, half by the one that runs. What is free
decides nothing, unless memory runs short: what is computed anew differs in the last digit from what is kept, and a run that is
resumed should do as it did."""
WORTH = 4
"""What is kept of a text is used if it is a quarter of it or more: the little that many texts have in common, as a system message,
costs more where the rest looks back on it than it saves."""


class Block(NamedTuple):
    """Texts whose keys and values lie together.

    texts: their ids; empty for a row that holds none.  tables: the keys and values, in the policy's own order.  first: the first
    row of them in its call.  columns: (texts, T) where the token of each position lies; None: at its position.
    """

    texts: Sequence[np.ndarray]
    tables: list[Tensor]
    first: int
    columns: np.ndarray | None = None

    @property
    def bytes(self) -> int:
        return sum(table.numel() * table.element_size() for table in self.tables)


class Found(NamedTuple):
    """Where the keys and values of the first `length` tokens of a text lie."""

    block: Block
    row: int
    length: int


class Kept:
    """Texts of earlier calls. What a call adds is found from the next one on, so that no thread depends on another's pace."""

    def __init__(self, most_bytes: int):
        self.most_bytes = most_bytes
        self.calls = 0
        self._blocks: list[Block] = []
        self._added: list[Block] = []
        self._index: dict[int, tuple[Block, int]] = {}
        self._weights: list[tuple[nn.Parameter, int]] = []

    @property
    def room(self) -> int:
        """The bytes that the present call may still add."""
        return self.most_bytes // 2 - sum(block.bytes for block in self._added)

    def begin(self, parameters: Iterable[nn.Parameter]) -> None:
        """A call begins: what earlier ones have added can be found now, unless the weights are others."""
        # the parameters themselves: of one that is gone, as noise on norms leaves it, another may have the address
        weights = [(p, p._version) for p in parameters]
        if len(weights) != len(self._weights) or any(
            p is not q or version != before for (p, version), (q, before) in zip(weights, self._weights, strict=True)
        ):
            self.forget()
        self._weights = weights
        self.calls += 1
        for block in sorted(self._added, key=lambda block: block.first):
            self._blocks.append(block)
            # of equal beginnings the newest counts: it goes last
            self._index |= {key: (block, row) for row, text in enumerate(block.texts) for key in _beginnings(text)}
        self._added = []
        while sum(block.bytes for block in self._blocks) > self.most_bytes // 2:
            self.drop_oldest()

    def drop_oldest(self) -> bool:
        """Let the texts of the oldest call go; returns whether there were any."""
        if not self._blocks:
            return False
        oldest = self._blocks.pop(0)
        self._index = {key: place for key, place in self._index.items() if place[0] is not oldest}
        return True

    def forget(self) -> bool:
        """Let all go; returns whether there was anything."""
        some = bool(self._blocks or self._added)
        self._blocks, self._added, self._index = [], [], {}
        return some

    def find(self, text: np.ndarray) -> Found | None:
        """A text that begins as this one does for as many CHUNKs as any, and how far; None where that is not worth it."""
        place = next((self._index[key] for key in reversed(list(_beginnings(text))) if key in self._index), None)
        if place is None:
            return None
        block, row = place
        width = min(len(block.texts[row]), len(text))
        other = np.flatnonzero(block.texts[row][:width] != text[:width])
        length = int(other[0]) if len(other) else width
        return Found(block, row, length) if length * WORTH >= len(text) else None

    def add(self, block: Block) -> None:
        self._added.append(block)


def most_bytes(device: torch.device) -> int:
    """How many bytes of keys and values may be kept on a device."""
    return int(SHARES.get(device.type, SHARES["cpu"]) * memory_of(device))


def _beginnings(text: np.ndarray) -> Iterator[int]:
    """A number for each beginning of a text of whole CHUNKs, the shortest first; equal beginnings have the same."""
    number = 0
    for end in range(CHUNK, len(text) + 1, CHUNK):
        number = hash((number, text[end - CHUNK : end].tobytes()))
        yield number
