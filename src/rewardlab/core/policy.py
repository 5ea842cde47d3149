"""What the engine asks of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from .batch import Batch, Outputs
from .problem import Message
from .trajectory import Sampling, Trajectory


@dataclass
class Spent:
    """Tokens (or other decisions) that a model has generated, and has scored: to judge them, or to learn from them."""

    generated: int = 0
    scored: int = 0

    def take(self) -> int:
        """The sum of both, which starts again from 0."""
        total = self.generated + self.scored
        self.generated = self.scored = 0
        return total


class Policy(Protocol):
    """A model that decides. Text, latents and motor commands go through the same five calls.

    `extend`, `score` and `evaluate` count what they compute in `spent`, by which methods are compared on one budget.
    """

    name: str
    device: torch.device
    context: int
    spent: Spent

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        """Append messages through the chat template. Earlier turns are never tokenised again."""

    def write(self, trajectories: Sequence[Trajectory], replies: Sequence[str]) -> list[Trajectory]:
        """Append recorded replies, ended, as decisions of this policy: what supervised and preference learning train on."""

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Draw one reply for each trajectory. The one sampling primitive; rows may come back unfinished."""

    def score(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-prob of every position of any text, (len,), without gradient."""

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs and what else is wanted, (B, T), with gradient."""


VALUE_ROWS = 256
"""Rows of one forward pass."""


@torch.no_grad()
def values(model: Any, rows: Sequence[Trajectory]) -> list[np.ndarray]:
    """(len,) for each row: the value of the text up to and including each position."""
    found: list[np.ndarray] = []
    for start in range(0, len(rows), VALUE_ROWS):
        part = rows[start : start + VALUE_ROWS]
        table = model.evaluate(_batch(part, model.device), ("value",)).value.cpu().numpy()
        found += [row[: len(t)] for row, t in zip(table, part, strict=True)]
    return found


def last_values(model: Any, rows: Sequence[Trajectory]) -> list[float]:
    """The value of each whole row."""
    return [float(v[-1]) for v in values(model, rows)]


def _batch(rows: Sequence[Trajectory], device: torch.device) -> Batch:
    length = torch.tensor([len(t) for t in rows])
    shape = (len(rows), int(length.max()))
    ids, mask = np.zeros(shape, np.int64), np.zeros(shape, bool)
    for i, t in enumerate(rows):
        ids[i, : len(t)], mask[i, : len(t)] = t.ids, t.mask
    blank = torch.zeros(shape, device=device)
    read, decided = torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
    group = torch.arange(len(rows), device=device)
    return Batch(read, decided, length.to(device), blank, blank, blank.bool(), group)
