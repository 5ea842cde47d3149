"""Vectors in place of token embeddings (`Turn.vectors`): soft prompts, or latents sampled by another model.

In trajectories and batches their id is NO_TOKEN. Within a pass of a model each different vector is a token of its own, with a
number from the size of the vocabulary on and a row below the embeddings. So equal prompts stay equal, and nothing else that
computes has to know of vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.util.device import moved

NO_TOKEN = -1
Prefix = Callable[[Sequence[Trajectory], torch.Generator], list[Trajectory]]
"""Rows that were read and no more -> the same with vectors before the reply."""


def numbered(rows: Sequence[Trajectory], vocab: int, joined: object = ()) -> tuple[list[np.ndarray], np.ndarray | None]:
    """The ids of each row, with numbers from `vocab` on for its vectors, and the different vectors (k, d), None without any.

    joined: models that decide along, which have embeddings of their own: with any, vectors are refused.
    """
    ids = [t.ids for t in rows]
    if all(turn.vectors is None for t in rows for turn in t.turns):
        return ids, None
    if joined:
        raise RewardlabError("the rows hold vectors, which models that decide together with the policy cannot read")
    # equal vectors have equal bytes; a dict keeps them in the order of their numbers
    numbers: dict[bytes, int] = {}
    found: list[np.ndarray] = []
    for i, t in enumerate(rows):
        own = [v for turn in t.turns if turn.vectors is not None for v in turn.vectors]
        places = np.flatnonzero(ids[i] == NO_TOKEN)
        if len(own) != len(places):
            raise RewardlabError(f"a row has {len(own)} vectors for the {len(places)} places that have no token")
        for v in own:
            if numbers.setdefault(v.tobytes(), vocab + len(found)) == vocab + len(found):
                found.append(v)
        ids[i] = ids[i].copy()
        ids[i][places] = [numbers[v.tobytes()] for v in own]
    return ids, np.stack(found)


def numbered_table(ids: Tensor, rows: Sequence[Trajectory], vocab: int) -> tuple[Tensor, np.ndarray | None]:
    """The same for the table (B, T) of the ids of `rows`; without rows it is as it was."""
    own, vectors = numbered(rows, vocab)
    if vectors is None:
        return ids, None
    numbers = np.concatenate([row[row >= vocab] for row in own])
    # row by row, as a mask goes through a table
    return ids.masked_scatter(ids == NO_TOKEN, moved(numbers, ids.device)), vectors


def below(embeddings: Tensor, vectors: np.ndarray | None) -> Tensor:
    """(V + k, d): the embeddings (V, d), and below them the vectors (k, d), in their number format."""
    if vectors is None:
        return embeddings
    if vectors.shape[1] != embeddings.shape[1]:
        raise RewardlabError(f"vectors of {vectors.shape[1]} numbers cannot stand for embeddings of {embeddings.shape[1]}")
    return torch.cat((embeddings, moved(vectors, embeddings.device).to(embeddings.dtype)))


class ReadsVectors:
    """What text policies have for vectors."""

    _prefix: Prefix | None = None
    _read: Sequence[Trajectory] = ()

    def token_embeddings(self) -> Tensor:
        """(V, hidden): what the first layer reads of each token."""
        raise NotImplementedError

    @contextmanager
    def prefixed(self, write: Prefix) -> Iterator[None]:
        """A context in which replies are sampled after what `write` adds to rows in which nothing was decided yet: a turn with
        `vectors`, which this model reads in place of token embeddings, here and wherever it reads the row later.
        """
        before, self._prefix = self._prefix, write
        try:
            yield
        finally:
            self._prefix = before

    def _begun(self, trajectories: Sequence[Trajectory], rng: torch.Generator) -> Sequence[Trajectory]:
        """The rows as a reply to them begins."""
        new = [i for i, t in enumerate(trajectories) if not t.mask.any()] if self._prefix else []
        if not new or self._prefix is None:
            return trajectories
        rows = list(trajectories)
        for i, row in zip(new, self._prefix([rows[i] for i in new], rng), strict=True):
            rows[i] = row
        return rows

    @contextmanager
    def _reading(self, rows: Sequence[Trajectory]) -> Iterator[None]:
        """A context in which a table of ids is that of these rows, which hold the vectors in it."""
        before, self._read = self._read, rows
        try:
            yield
        finally:
            self._read = before


def tokens_decided(batch: Batch) -> Tensor:
    """(B, T) the mask of the batch without vectors, which are another model's decisions and no tokens."""
    soft = any(turn.vectors is not None for t, _ in batch.rows for turn in t.turns)
    return batch.mask & (batch.ids != NO_TOKEN) if soft else batch.mask
