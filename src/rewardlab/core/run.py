"""The state of a training run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from rewardlab.errors import RewardlabError


@dataclass
class Run:
    """All that changes while training. Methods keep their own state in `memory`, as plain data; it is saved with the run.

    `rng(purpose)` gives the random stream of a purpose (data, rollout, environment, eval) at this step. Streams are keyed by
    (seed, purpose, step), so no generator state needs to be saved, and using one never moves another. `verify` is the
    task's own verifier, as a reward. `budget`: tokens generated and scored by all models at which the run ends.
    """

    policy: Any
    reference: Any = None
    models: dict[str, Any] = field(default_factory=dict)
    step: int = 0
    steps: int = 1
    budget: int | None = None
    seed: int = 0
    max_new: int = 128
    verify: Any = None
    memory: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    _streams: dict[str, torch.Generator] = field(default_factory=dict, repr=False)
    _streams_step: int = field(default=-1, repr=False)

    @property
    def progress(self) -> float:
        """How much of the run is done, 0 to 1: of its steps, or of its budget, whichever is further."""
        return min(1.0, max(self.step / max(1, self.steps), self.tokens / self.budget if self.budget else 0.0))

    @property
    def tokens(self) -> int:
        """What all models together have generated and scored in training, up to the last step."""
        return self.memory.get("engine.tokens", 0)

    @property
    def over(self) -> bool:
        """Whether all steps are done, or the budget is spent."""
        return self.step >= self.steps or (self.budget is not None and self.tokens >= self.budget)

    def model(self, name: str) -> Any:
        """A model of the run by name: "policy", "reference", or a learner's."""
        found = {"policy": self.policy, "reference": self.reference, **self.models}.get(name)
        if found is None:
            raise RewardlabError(f"the run has no model named {name!r}; it has: policy, {', '.join(self.models) or 'and no other'}")
        return found

    def take_spent(self) -> int:
        """Tokens generated and scored by all models since this was last asked."""
        return sum(m.spent.take() for m in (self.policy, self.reference, *self.models.values()) if m is not None)

    def rng(self, purpose: str) -> torch.Generator:
        if self._streams_step != self.step:
            self._streams, self._streams_step = {}, self.step
        if purpose not in self._streams:
            self._streams[purpose] = stream(self.seed, purpose, self.step)
        return self._streams[purpose]

    def detached(self) -> Run:
        """The same run with random streams and metrics of its own: what only looks on moves nothing that is trained or logged."""
        return replace(self, metrics={}, _streams={}, _streams_step=-1)

    def log(self, name: str, value: float) -> None:
        """Add a number to this step's metrics."""
        self.metrics[name] = float(value)


def stream(*key: Any) -> torch.Generator:
    """A generator whose seed depends on the key alone."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "little") >> 1)


def seed_of(*key: Any) -> int:
    """A 63-bit seed that depends on the key alone."""
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "little") >> 1
