"""What parts do with rows before a model computes anything: which texts they write, and what they refuse.

A part is called with a row and a policy that reads and writes as the model does, and that ends the call where a model
would sample or compute. No environment begins, and a reward that a part asks pays every reply the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from rewardlab.core import Environment, Part, Problem, Recipe, Run, Score, Trajectory
from rewardlab.errors import TooLong
from rewardlab.policies.text import TextPolicy
from rewardlab.registry.playing import changed_in
from rewardlab.rewards.returned import is_ours
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.runs.config import RunConfig

READS = ("tokenizer", "ends", "encode", "decode", "decode_all", "pieces", "prompt_lengths", "text_lengths")


class Known(Exception):
    """From here on a model would compute, or an environment would begin."""


class Ruler:
    """A policy that reads and writes as another one does, and ends the call, as Known, where it would sample or compute.

    longest: tokens of the longest text that was written.  pays: what every reward pays here.  asked: whether one was asked.
    """

    def __init__(self, policy: TextPolicy):
        self.pays, self.asked = 1.0, False
        self.policy, self.name, self.context, self.step = policy, policy.name, policy.context, 0
        self.token_count, self.longest = policy.token_count, 0

    def __getattr__(self, name: str) -> Any:
        if name in READS:
            return getattr(self.policy, name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise Known

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Any]) -> list[Trajectory]:
        return self.policy.read(trajectories, messages)

    def write(self, trajectories: Sequence[Trajectory], replies: Sequence[Any]) -> list[Trajectory]:
        rows = self.policy.write(trajectories, replies) if trajectories else []
        self.longest = max([self.longest, *map(len, rows)])
        return rows

    def check_fits(self, trajectory: Trajectory, max_new: int) -> None:
        if len(trajectory) + max_new > self.context:
            self.longest = max(self.longest, len(trajectory) + max_new)
            raise TooLong

    def extend(self, trajectories: Sequence[Trajectory], sampling: Any, rng: torch.Generator) -> list[Trajectory]:
        for t in trajectories:
            self.check_fits(t, sampling.max_new)
        return self._computes(trajectories)

    def score(self, trajectories: Sequence[Trajectory]) -> list[Any]:
        for t in trajectories:
            self.check_fits(t, 0)
        return self._computes(trajectories)

    def _computes(self, trajectories: Sequence[Trajectory]) -> list[Any]:
        if trajectories:
            raise Known
        return []


class Pays(Reward):
    """In the place of a reward: pays every reply what the ruler says."""

    ruler: Ruler

    def __call__(self, groups: Sequence[Sequence[Trajectory]], *_: Any) -> list[list[Score]]:
        self.ruler.asked = True
        return [[Score(self.ruler.pays) for _ in group] for group in groups]

    @classmethod
    def by(cls, function: Any, ruler: Ruler) -> Pays:
        made = cls(function)
        made.ruler = ruler
        return made


class Begins(Environment):
    """In the place of an environment: a part that plays one has come to its end here."""

    def start(self, problem: Problem, seed: int) -> NoReturn:
        raise Known


def is_tried(part: Part) -> bool:
    """Whether the part may be called here: no function in it is the user's."""
    return all(getattr(x, "function", None) is None or is_ours(x.function) for x in part.walk())


def harmless(part: Any, pays: Ruler | None = None) -> Any:
    """The part without environments that begin something.  pays: in the place of rewards, which then need no computing."""

    def change(found: Part) -> Part:
        if isinstance(found, Environment):
            return Begins(found.function, found.bound, found.options)
        return Pays.by(found.function, pays) if pays and isinstance(found, Reward) else found

    return changed_in(part, change)


def run_with(ruler: Ruler, recipe: Recipe, config: RunConfig) -> Run:
    """A run in which every model is the ruler."""
    verify: Any = Pays.by(correct.function, ruler)
    models: dict[str, Any] = {learner.name: ruler for learner in recipe.also}
    return Run(ruler, reference=ruler, models=models, seed=config.seed, max_new=config.max_new or 1, verify=verify)
