"""The state of a training run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from rewardlab.core.policy import TokenCount, uncounted
from rewardlab.core.problem import Problem
from rewardlab.core.score import Score, Scores
from rewardlab.core.trajectory import Group, Trajectory
from rewardlab.errors import RewardlabError


@dataclass
class Verdicts:
    """The scores of a step's rollouts by the task's verifier, so that none is verified twice, by their identity. Never saved.

    They stay readable until the first new rollout of a later step is verified: the log reads them after the step has advanced.
    """

    step: int = -1
    known: dict[int, tuple[Trajectory, Score]] = field(default_factory=dict)
    """By id. The trajectory is stored too, since Python may give the id of a deleted object to a new one."""

    def of(self, groups: list[Group], step: int, verify: Callable[[list[Group]], Scores]) -> Scores:
        """The score of every rollout; `verify` is called with the new ones only, in their groups."""
        # copied before they are forgotten: a call may mix new rollouts with some of the step before
        remembered = dict(self.known)
        new = [rest for group in groups if (rest := [t for t in group if id(t) not in remembered])]
        if new:
            self.remember(new, verify(new), step)
            remembered |= self.known
        return [[remembered[id(t)][1] for t in group] for group in groups]

    def remember(self, groups: list[Group], scores: Sequence[Sequence[Score | None]], step: int) -> None:
        """Add what the verifier has said of these rollouts, here or in another process; None: it was not asked."""
        if step != self.step:
            self.step, self.known = step, {}
        for group, row in zip(groups, scores, strict=True):
            self.known.update({id(t): (t, s) for t, s in zip(group, row, strict=True) if s is not None})


TOKENS = "engine.tokens"
"""The key of `run.memory` that holds the run's token total; in the memory it is saved and resumed with the rest."""


@dataclass
class Run:
    """All that changes while training. Methods keep their own state in `memory`, as plain data; it is saved with the run.

    `reward_timeout`: seconds that one call of a user's reward may take; 0: no limit. `budget`: the tokens at which the run ends.
    `rng(purpose)` gives the random stream of a purpose (data, rollout, environment, eval) at this step. Streams are keyed by
    (seed, purpose, moment): no generator state needs to be saved, and sampling from one never changes another. The moment is the
    step, and for everything held-out the same throughout the run. `process`: which of several samples with it; those after the
    first have streams of their own, and the seed of all. `verify`: the task's verifier, as a reward. `more_problems(n)`: the next n
    training problems, for a rollout that drops some; None outside of the policy's rollout in training.
    """

    policy: Any
    reference: Any = None
    models: dict[str, Any] = field(default_factory=dict)
    step: int = 0
    steps: int = 1
    budget: int | None = None
    seed: int = 0
    process: int = 0
    max_new: int = 128
    reward_timeout: float = 0.0
    verify: Any = None
    more_problems: Callable[[int], list[Problem]] | None = None
    memory: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    held_out: bool = False
    verified: Verdicts = field(default_factory=Verdicts, repr=False)
    _streams: dict[str, torch.Generator] = field(default_factory=dict, repr=False)
    _streams_step: int = field(default=-1, repr=False)

    def __repr__(self) -> str:
        models = [f"{name} {model!r}" for name, model in {"policy": self.policy, **self.models}.items()]
        return f"Run(step {self.step} of {self.steps}, {self.tokens:,} tokens, seed {self.seed}, {', '.join(models)})"

    @property
    def progress(self) -> float:
        """How much of the run is done, 0 to 1: of its steps, or of its budget, whichever is further."""
        # a run of 0 steps divides by 1
        return min(1.0, max(self.step / max(1, self.steps), self.tokens / self.budget if self.budget else 0.0))

    @property
    def tokens(self) -> int:
        """Tokens that all models together have generated and scored in training, up to the last step."""
        return self.memory.get(TOKENS, 0)

    @property
    def over(self) -> bool:
        """Whether all steps are done, or the budget is used up."""
        return self.step >= self.steps or (self.budget is not None and self.tokens >= self.budget)

    def model(self, name: str) -> Any:
        """A model of the run by name: "policy", "reference", or a learner's."""
        model = {"policy": self.policy, "reference": self.reference, **self.models}.get(name)
        if model is None:
            raise RewardlabError(f"the run has no model named {name!r}; it has: policy, {', '.join(self.models) or 'and no other'}")
        return model

    def weighted(self, names: Sequence[str], weight: float, weights: Sequence[float] = ()) -> list[tuple[float, Any]]:
        """Models of the run, each with a weight: `weight` times its own of `weights`, which without any are 1."""
        if weights and len(weights) != len(names):
            raise RewardlabError(f"{len(weights)} weights are given for the models {', '.join(names)}: give one for each, or none")
        return [(weight * own, self.model(name)) for name, own in zip(names, weights or [1.0] * len(names), strict=True)]

    @property
    def token_count(self) -> TokenCount:
        """The counts of all models, summed. They include what was generated and scored before the run."""
        counts = [model.token_count for model in self._all_models()]
        return TokenCount(sum(c.generated for c in counts), sum(c.scored for c in counts))

    @contextmanager
    def unbilled(self) -> Iterator[None]:
        """A context in which no tokens count towards the budget, for held-out evaluation, logging and recording."""
        known = self._all_models()
        try:
            with uncounted(*known):
                yield
        finally:
            # a scorer that is named by its path is loaded where it is first asked, which may be in this context
            for model in (m for m in self._all_models() if all(m is not other for other in known)):
                model.token_count = TokenCount()

    def _all_models(self) -> list[Any]:
        models = (self.policy, self.reference, *self.models.values())
        return list({id(m): m for m in models if m is not None}.values())  # one object may have two names; it is counted once

    def verdicts(self, groups: list[Group]) -> Scores:
        """The scores that the task's verifier gives these rollouts. Within a step each rollout is verified once and remembered.

        A verifier that compares rollouts with one another (over="group" or "groups") is called every time, because its score of a
        rollout depends on the others. `verify(groups, run)` verifies without remembering, as held-out evaluations do.
        """
        if self.verify is None:
            raise RewardlabError("the task's verifier is needed, and this run has none: name a task, or use a reward of your own")
        if not self.verify.per_rollout:
            return self.verify(groups, self)
        return self.verified.of(groups, self.step, lambda new: self.verify(new, self))

    def verdict_of(self, trajectory: Trajectory) -> Score | None:
        """The score that the task's verifier gave this rollout, as far as it is remembered; None where nobody asked for it."""
        return self.verified.known.get(id(trajectory), (None, None))[1]

    def rng(self, purpose: str) -> torch.Generator:
        """The random stream of a purpose at this step; calls within a step continue the same stream."""
        if self._streams_step != self.step:
            self._streams, self._streams_step = {}, self.step
        return self._streams.setdefault(purpose, stream(self.seed, purpose, self.moment, *filter(None, [self.process])))

    @property
    def moment(self) -> int | str:
        """What random numbers are keyed by, beside the seed and their purpose.

        Held-out problems are sampled with the same random numbers at every step, and by every method with the same seed: two
        policies, or a policy before and after training, then differ by what they learnt, and not by their luck.
        """
        return "held-out" if self.held_out else self.step

    def detached(self) -> Run:
        """The same run with random streams and metrics of its own: what is done with it cannot affect training or its log."""
        # verdicts are copied too: new ones here must not push out those of the training step
        verified = replace(self.verified, known={**self.verified.known})
        return replace(self, metrics={}, verified=verified, _streams={}, _streams_step=-1)

    def for_evaluation(self) -> Run:
        """The run, detached, as held-out problems are sampled with it."""
        return replace(self.detached(), held_out=True)

    def log(self, name: str, value: float) -> None:
        """Add a number to this step's metrics."""
        self.metrics[name] = float(value)


def stream(*key: Any) -> torch.Generator:
    """A generator whose seed depends on the key alone."""
    return torch.Generator().manual_seed(seed_of(*key))


def seed_of(*key: Any) -> int:
    """A 63-bit seed that depends on the key alone."""
    # a digest, since Python's hash() of a string differs from process to process. 63 bits: not negative as a signed 64-bit integer
    return int.from_bytes(hashlib.blake2b(repr(key).encode(), digest_size=8).digest(), "little") >> 1


def uniform_of(*key: object) -> float:
    """A number from (0, 1) that depends on the key alone: chance that is the same whenever the same thing is asked again."""
    # a seed of 63 bits is at most 2^63 - 1, and half a step keeps both ends out
    return (seed_of(*key) + 0.5) / 2**63
