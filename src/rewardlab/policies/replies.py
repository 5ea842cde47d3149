"""The replies that a call of `extend` has sampled so far: tokens, both log-probs, and where each reply ended.

All state per row is numpy, vectorised over rows; Python runs once per decoding step, never once per token and row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch

from rewardlab.core import Sampling, Trajectory, Turn

SEEDS = 2**31 - 1
"""Seeds that servers take are below this."""


class Writes(Protocol):
    """What replies need from a policy: its name, its training step, and its tokenizer."""

    name: str
    step: int
    tokenizer: Any

    @property
    def ends(self) -> frozenset[int]: ...

    def decode(self, ids: np.ndarray) -> str: ...

    def decode_all(self, rows: Sequence[np.ndarray]) -> list[str]: ...

    def all_pieces(self) -> list[str]: ...


class Replies:
    """The replies of a call, one to a row.

    ids, raw, sampled: (rows, max_new), tokens and both log-probs.  count: (rows,) tokens so far.  stops: why each row ended.

    uniforms: (rows, max_new) in [0, 1), generated beforehand: a row samples the same tokens whatever the other rows
    do, and in whatever order rows are decoded.
    """

    def __init__(self, policy: Writes, rows: int, sampling: Sampling, rng: torch.Generator, vocab: int):
        self.policy, self.sampling = policy, sampling
        shape = (rows, sampling.max_new)
        self.ids, self.raw, self.sampled = np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.count = np.zeros(rows, np.int64)
        self.stops: list[str | None] = [None] * rows
        self.marks = StopMarks(policy, sampling, vocab)
        # greedy decoding uses no random numbers
        random = sampling.temperature != 0
        self._uniforms = _uniforms(shape, sampling.seeds, rng) if random else None

    def uniform(self, rows: np.ndarray) -> torch.Tensor:
        """(n,) the random numbers for the next token of `rows`, which may have ended."""
        if self._uniforms is None:
            return torch.zeros(len(rows), dtype=torch.float64)
        # a row that has ended may still be computed beside the others: it must not read past the end
        return torch.from_numpy(self._uniforms[rows, np.minimum(self.count[rows], self.sampling.max_new - 1)])

    def pauses(self, rows: np.ndarray, logits: torch.Tensor) -> np.ndarray | None:
        """(n,) which of `rows` pause before the token that these logits (n, V) are for; None where no reply ever does."""
        if math.isinf(self.sampling.max_entropy):
            return None
        logp = logits.log_softmax(1)
        # a token that cannot be sampled has 0 * -inf
        entropy = -(logp.exp() * logp.clamp(min=-1e4)).sum(1)
        unsure = (entropy > self.sampling.max_entropy).cpu().numpy()
        return unsure & (self.count[rows] >= self.sampling.min_new)

    def record(
        self, rows: np.ndarray, ids: np.ndarray, raw: np.ndarray, sampled: np.ndarray, pauses: np.ndarray | None = None
    ) -> list[int]:
        """Add one token to each of `rows` that does not pause; returns which of them (0 .. n-1) ended with it, or pause."""
        if pauses is not None and pauses.any():
            going = np.flatnonzero(~pauses)
            for row in rows[pauses]:
                self.stops[int(row)] = "entropy"
            ended = self.record(rows[going], ids[going], raw[going], sampled[going])
            return sorted([*np.flatnonzero(pauses).tolist(), *going[ended].tolist()])
        column = self.count[rows]
        self.ids[rows, column], self.raw[rows, column], self.sampled[rows, column] = ids, raw, sampled
        self.count[rows] = column + 1
        full = column + 1 >= self.sampling.max_new
        ended = []
        # the text is decoded only for rows that may have ended: once per token would dominate the cost
        for i in np.flatnonzero(self.marks.may_end[ids] | full):
            row = int(rows[i])
            self.stops[row] = self.marks.why(self.ids[row, : self.count[row]]) or ("length" if full[i] else None)
            if self.stops[row] is not None:
                ended.append(int(i))
        return ended

    def forget(self, rows: np.ndarray) -> None:
        """Let rows begin anew: they sample the same tokens again."""
        self.count[rows] = 0
        for row in rows:
            self.stops[int(row)] = None

    def added_to(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """The trajectories with their replies as one more turn."""
        texts = self.policy.decode_all([ids[:n] for ids, n in zip(self.ids, self.count, strict=True)])
        return [self._added(i, t, text) for i, (t, text) in enumerate(zip(trajectories, texts, strict=True))]

    def _added(self, row: int, trajectory: Trajectory, text: str) -> Trajectory:
        # copies: a view would keep the whole (rows, max_new) table alive with each trajectory
        ids, raw, sampled = (x[row, : self.count[row]].copy() for x in (self.ids, self.raw, self.sampled))
        return trajectory.plus(Turn(self.policy.name, ids, raw, sampled, text, step=self.policy.step), self.stops[row])


def seeds_of(rows: int, sampling: Sampling, rng: torch.Generator) -> list[int | None]:
    """A seed for each row of a call that is sampled elsewhere, so that its reply does not depend on the others; None if greedy."""
    if sampling.temperature == 0:
        return [None] * rows
    own: list[int | None] = [seed % SEEDS for seed in sampling.seeds or ()]
    return own or torch.randint(SEEDS, (rows,), generator=rng, device=rng.device).tolist()


def _uniforms(shape: tuple[int, int], seeds: Sequence[int] | None, rng: torch.Generator) -> np.ndarray:
    """(rows, max_new) in [0, 1), of one generator, or of one for each row."""
    if seeds is None:
        return torch.rand(shape, generator=rng, dtype=torch.float64, device=rng.device).cpu().numpy()
    return np.stack([np.random.default_rng(seed).random(shape[1]) for seed in seeds])


class StopMarks:
    """Which tokens may end a reply: only where one was sampled is the text decoded and examined."""

    def __init__(self, policy: Writes, sampling: Sampling, vocab: int):
        self.policy, self.sampling = policy, sampling
        # a tokenizer may have more tokens than the model has logits
        self.may_end = np.zeros(max(vocab, len(policy.tokenizer)), bool)
        self.may_end[list(policy.ends)] = True
        # a stop text is complete only when its last character is written; `stop_when` is asked at the end of each line
        closing = {s[-1] for s in sampling.stop} | ({"\n"} if sampling.stop_when else set())
        if not all(c.isascii() for c in closing):
            # a token that holds only some bytes of a character decodes to U+FFFD: it may complete a stop text
            closing.add("\ufffd")
        if closing:
            # one pass over the vocabulary per call, instead of a text search per token
            for i, piece in enumerate(policy.all_pieces()):
                self.may_end[i] |= any(c in piece for c in closing)

    def why(self, ids: np.ndarray) -> str | None:
        """Why a reply of these tokens has ended; None if it goes on."""
        if int(ids[-1]) in self.policy.ends:
            return "end"
        if not self.sampling.stop and not self.sampling.stop_when:
            return None
        text = self.policy.decode(ids)
        if any(s in text for s in self.sampling.stop):
            return "stop"
        if self.sampling.stop_when and self.sampling.stop_when(text):
            return "predicate"
        return None
