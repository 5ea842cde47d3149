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
