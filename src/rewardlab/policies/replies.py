"""What a call of `extend` has drawn so far: tokens, both log-probs, and where each reply ended.

All bookkeeping per row is numpy, vectorised over rows; Python runs once per decoding step, never once per token and row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from rewardlab.core import Sampling, Trajectory, Turn

from .text import TextPolicy


class Replies:
    """ids, raw, sampled: (rows, max_new), what was drawn; count (rows,): how much of it; stops: why each row ended, None if open.

    chance: (rows, max_new) in [0, 1), drawn beforehand: what a row draws then depends on no other row, nor on the order of work.
    """

    def __init__(self, policy: TextPolicy, rows: int, sampling: Sampling, rng: torch.Generator, vocab: int):
        self.policy, self.sampling = policy, sampling
        shape = (rows, sampling.max_new)
        self.ids, self.raw, self.sampled = np.zeros(shape, np.int64), np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        self.count = np.zeros(rows, np.int64)
        self.stops: list[str | None] = [None] * rows
        self.marks = StopMarks(policy, sampling, vocab)
        # greedy drawing asks nothing of chance
        random = sampling.temperature != 0
        self._chance = torch.rand(shape, generator=rng, dtype=torch.float64, device=rng.device).cpu().numpy() if random else None

    def uniform(self, rows: np.ndarray) -> torch.Tensor:
        """(n,) what chance says of the next token of `rows`, which may have ended."""
        if self._chance is None:
            return torch.zeros(len(rows), dtype=torch.float64)
        return torch.from_numpy(self._chance[rows, np.minimum(self.count[rows], self.sampling.max_new - 1)])

    def record(self, rows: np.ndarray, ids: np.ndarray, raw: np.ndarray, sampled: np.ndarray) -> list[int]:
        """Add one token to each of `rows`; returns which of them (0 .. n-1) ended with it."""
        at = self.count[rows]
        self.ids[rows, at], self.raw[rows, at], self.sampled[rows, at] = ids, raw, sampled
        self.count[rows] = at + 1
        last = at + 1 >= self.sampling.max_new
        ended = []
        for i in np.flatnonzero(self.marks.may_end[ids] | last):
            row = int(rows[i])
            self.stops[row] = self.marks.why(self.ids[row, : self.count[row]]) or ("length" if last[i] else None)
            if self.stops[row] is not None:
                ended.append(int(i))
        return ended

    def added_to(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """The trajectories with their replies as a turn more."""
        texts = self.policy.decode_all([ids[:n] for ids, n in zip(self.ids, self.count, strict=True)])
        return [self._added(i, t, text) for i, (t, text) in enumerate(zip(trajectories, texts, strict=True))]

    def _added(self, row: int, trajectory: Trajectory, text: str) -> Trajectory:
        ids, raw, sampled = (x[row, : self.count[row]].copy() for x in (self.ids, self.raw, self.sampled))
        return trajectory.plus(Turn(self.policy.name, ids, raw, sampled, text, step=self.policy.step), self.stops[row])


class StopMarks:
    """Which tokens may end a reply, so that text is looked at only where one was drawn."""

    def __init__(self, policy: TextPolicy, sampling: Sampling, vocab: int):
        self.policy, self.sampling = policy, sampling
        # a tokenizer may know more tokens than the model can draw
        self.may_end = np.zeros(max(vocab, len(policy.tokenizer)), bool)
        self.may_end[list(policy.ends)] = True
        closing = {s[-1] for s in sampling.stop} | ({"\n"} if sampling.stop_when else set())
        if not all(c.isascii() for c in closing):
            closing.add("\ufffd")  # how a token reads that holds only some bytes of a character
        if closing:
            for i, piece in enumerate(policy.all_pieces()):
                self.may_end[i] |= any(c in piece for c in closing)

    def why(self, ids: np.ndarray) -> str | None:
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
