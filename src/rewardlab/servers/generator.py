"""One policy for all requests: a queue, with like requests generated in one batch."""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from rewardlab.core import Sampling, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.util.outputs import forward_batch

CHUNK = 16
"""Tokens after which a reply that is streamed is shown. Its text is read anew each time, which costs less than the tokens do."""
TOGETHER = 64
"""Rows that are generated at a time."""

Tops = list[list[tuple[int, float]]]
"""For each token of a reply, the likeliest ids in its place with their log-probs."""


class Busy(RewardlabError):
    """Too many requests wait."""


@dataclass(eq=False)
class Work:
    """Replies that are asked for.

    rows: prompts, each as often as replies to it are wanted.  seed: None for any.  likely: of how many of the likeliest tokens the
    log-probs are wanted.  score: whether the log-probs of the prompts are.  show: called with the rows so far, in another thread,
    as they are written.  done: the rows in the end.  given_up: set where nobody waits for them.
    """

    rows: list[Trajectory]
    sampling: Sampling
    seed: int | None = None
    likely: int = 0
    score: bool = False
    show: Callable[[list[Written]], None] | None = None
    done: Future[list[Written]] = field(default_factory=Future)
    given_up: threading.Event = field(default_factory=threading.Event)

    @property
    def alike(self) -> Sampling | None:
        """What others must have to be generated together with it; None where they would change its random numbers."""
        free = self.seed is None or self.sampling.temperature == 0
        return self.sampling if free and self.show is None and not self.likely and not self.score else None


@dataclass
class Written:
    """A row with its reply.  before: length of the prompt.  tops: see `Tops`.  scores: (len,) log-probs of all, where asked for."""

    row: Trajectory
    before: int
    tops: Tops = field(default_factory=list)
    scores: np.ndarray | None = None

    @property
    def ids(self) -> np.ndarray:
        return self.row.ids[self.before :]

    @property
    def logprobs(self) -> np.ndarray:
        return self.row.column("logprobs")[self.before :]


class Generator:
    """policy: of text.  most: requests that may wait."""

    def __init__(self, policy: Any, most: int):
        self.policy, self.most = policy, most
        self.generated = 0
        self._queue: deque[Work] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="generator", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        return len(self._queue)

    def submit(self, work: Work) -> Work:
        """Raises Busy."""
        with self._changed:
            if len(self._queue) >= self.most or self._closed:
                raise Busy(f"{len(self._queue)} requests wait already; try again")
            self._queue.append(work)
            self._changed.notify()
        return work

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
            while self._queue:
                self._queue.popleft().done.set_exception(RewardlabError("the server was stopped"))
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while works := self._take():
            try:
                self._together(works) if works[0].show is None else self._shown(works[0], works[0].show)
            except Exception as problem:
                for work in works:
                    if not work.done.done():
                        work.done.set_exception(problem)

    def _take(self) -> list[Work]:
        """The next request, with others like it; none where this was closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            if self._closed:
                return []
            works = [self._queue.popleft()]
            if (alike := works[0].alike) is not None:
                room = TOGETHER - len(works[0].rows)
                for other in list(self._queue):
                    if other.alike == alike and len(other.rows) <= room:
                        self._queue.remove(other)
                        works.append(other)
                        room -= len(other.rows)
            return works

    def _together(self, works: Sequence[Work]) -> None:
        first, rows = works[0], [row for work in works for row in work.rows]
        written = [Written(row, len(row)) for row in rows]
        if first.sampling.max_new and not all(work.given_up.is_set() for work in works):
            written = self._extended(written, first.sampling, self._rng(first.seed))
        self._looked_up(first, written)
        for work in works:
            mine, written = written[: len(work.rows)], written[len(work.rows) :]
            work.done.set_result(mine)

    def _shown(self, work: Work, show: Callable[[list[Written]], None]) -> None:
        rng, left = self._rng(work.seed), work.sampling.max_new
        written = [Written(row, len(row)) for row in work.rows]
        while left > 0 and not work.given_up.is_set() and (open_rows := [w for w in written if not self._has_ended(w, work)]):
            size = min(CHUNK, left)
            left -= size
            # a row that has come to its length is open for the next tokens
            again = [replace(w, row=replace(w.row, stop=None)) for w in open_rows]
            longer = iter(self._extended(again, replace(work.sampling, max_new=size), rng))
            written = [w if self._has_ended(w, work) else next(longer) for w in written]
            self._looked_up(work, written)
            show(written)
        work.done.set_result(written)

    def _has_ended(self, w: Written, work: Work) -> bool:
        if w.row.stop == "length":
            text = self.policy.decode(w.ids)
            return any(stop in text for stop in work.sampling.stop)
        return w.row.stop is not None

    def _extended(self, written: list[Written], sampling: Sampling, rng: torch.Generator) -> list[Written]:
        rows = self.policy.extend([w.row for w in written], sampling, rng)
        found = [replace(w, row=row) for w, row in zip(written, rows, strict=True)]
        self.generated += sum(len(new.row) - len(old.row) for new, old in zip(found, written, strict=True))
        return found

    def _rng(self, seed: int | None) -> torch.Generator:
        return torch.Generator().manual_seed(secrets.randbits(63) if seed is None else seed)

    def _looked_up(self, work: Work, written: list[Written]) -> None:
        """Fill in what was asked for of the rows: log-probs of prompts, and the likeliest tokens."""
        if work.score:
            for w, scores in zip(written, self.policy.score([w.row for w in written]), strict=True):
                w.scores = scores
        if work.likely:
            for w in written:
                w.tops = likeliest(self.policy, w.row, 1 if work.score else w.before, work.likely)


@torch.no_grad()
def likeliest(policy: Any, row: Trajectory, start: int, k: int) -> Tops:
    """The k likeliest ids at each position from `start`, with log-probs of the raw policy."""
    if len(row) <= start:
        return []
    hidden = policy.evaluate(forward_batch([row], policy.device), ("hidden",)).hidden[0, start - 1 : len(row) - 1]
    ids, logprobs = policy.likeliest(hidden, k)
    return [list(zip(*pair, strict=True)) for pair in zip(ids.tolist(), logprobs.tolist(), strict=True)]
