"""The interface between the engine and a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch

from rewardlab.core.batch import Batch, Outputs
from rewardlab.core.problem import Message
from rewardlab.core.trajectory import Sampling, Trajectory


@dataclass
class TokenCount:
    """Tokens (or other decisions) that a model has generated, and those it has scored, in evaluation or training.

    Counts only grow, except that `uncounted` restores them.
    """

    generated: int = 0
    scored: int = 0

    @property
    def total(self) -> int:
        return self.generated + self.scored


@contextmanager
def uncounted(*models: Any) -> Iterator[None]:
    """A context in which tokens of these models do not count: on leaving it, their token counts are restored."""
    # a copy of each count, since models add to theirs in place
    before = [replace(model.token_count) for model in models]
    try:
        yield
    finally:
        for model, count in zip(models, before, strict=True):
            model.token_count = count


class Policy(Protocol):
    """A model that makes decisions. Text, latents and motor commands go through the same five calls.

    `extend`, `score` and `evaluate` add their tokens to `token_count`, so that methods can be compared at the same token budget.
    """

    name: str
    device: torch.device
    context: int
    token_count: TokenCount

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        """Append messages through the chat template. Earlier turns are never tokenised again."""

    def write(self, trajectories: Sequence[Trajectory], replies: Sequence[str]) -> list[Trajectory]:
        """Append recorded replies as finished decisions of this policy, for supervised and preference learning."""

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Sample one reply for each trajectory; rows may come back unfinished. All sampling goes through this method."""

    def score(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-prob of every position of each trajectory, (len,), without gradient; the text need not be sampled by this policy."""

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs and the other outputs named in `wants`, (B, T), with gradient."""


ROWS_AT_ONCE = 256
"""Rows of one forward pass, which bounds its memory."""


def values(model: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """(len,) for each row: the value of the text up to and including each position."""
    return _output(model, rows, "value")


def entropies(model: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """(len,) for each row: the entropy in nats of the distribution from which each decision was taken; 0 where text was only read.

    Of the whole distribution, before temperature, top-k and top-p.
    """
    return _output(model, rows, "entropy")


def embeddings(model: Any, rows: Sequence[Trajectory]) -> np.ndarray:
    """(n, D) a vector of length 1 for each row: the mean of the model's hidden states at its decisions."""
    means = [h[t.mask].mean(0) for t, h in zip(rows, _output(model, rows, "hidden"), strict=True)]
    return np.stack([m / max(float(np.linalg.norm(m)), 1e-12) for m in means])


@torch.no_grad()
def _output(model: Any, rows: Sequence[Trajectory], name: str) -> list[np.ndarray]:
    per_row: list[np.ndarray] = []
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = rows[start : start + ROWS_AT_ONCE]
        table = getattr(model.evaluate(forward_batch(part, model.device), (name,)), name).cpu().numpy()  # (B, T)
        per_row += [row[: len(t)] for row, t in zip(table, part, strict=True)]
    return per_row


def last_values(model: Any, rows: Sequence[Trajectory]) -> list[float]:
    """The value at the end of each row."""
    return [float(v[-1]) for v in values(model, rows)]


def forward_batch(rows: Sequence[Trajectory], device: torch.device) -> Batch:
    """A batch for a forward pass alone: no rewards, no old log-probs, every row its own group."""
    length = torch.tensor([len(t) for t in rows])
    shape = (len(rows), int(length.max()))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, bool)
    for i, t in enumerate(rows):
        ids[i, : len(t)], mask[i, : len(t)] = t.ids, t.mask
    # one tensor for all unused columns: nobody writes to them
    blank = torch.zeros(shape, device=device)
    on_device, decided = torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
    group = torch.arange(len(rows), device=device)
    # the rows too: what stands beside their ids (images, vectors) is read from them
    return Batch(on_device, decided, length.to(device), blank, blank, blank.bool(), group, rows=[(t, None) for t in rows])
