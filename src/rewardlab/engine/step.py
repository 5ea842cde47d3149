"""What a training loop may do. Methods with a loop of their own use these; none re-implements training."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rewardlab.core import Batch, Group, Learner, Problem, Recipe, Run, Scores, Task, check_finite, seed_of
from rewardlab.errors import NotFinite, RewardlabError
from rewardlab.util.device import memory_of

from . import collate as collating
from .distributed import rank, shared, spread
from .update import Learning, new_optimiser, update


@dataclass(frozen=True)
class Settings:
    """What a run is given besides its recipe.

    steps: training steps.  eval_every, checkpoint_every, record_every: in steps; the last step is always included.
    eval_problems: held-out problems per evaluation.  micro_tokens: real tokens per forward and backward pass (`fitting_tokens`
    says how many a machine holds).
    max_missing: share of rollouts without a verdict at which the run stops.
    patience: steps after which a reward that never varied stops the run; 0 never.
    budget: tokens generated and scored by all models at which training ends before its steps do.
    start: position in the training data to begin at.
    """

    steps: int = 100
    seed: int = 0
    eval_every: int = 10
    eval_problems: int = 200
    checkpoint_every: int = 10
    record_every: int = 10
    micro_tokens: int = 16384
    max_missing: float = 0.5
    patience: int = 30
    budget: int | None = None
    start: int = 0


SHARE_OF_ACTIVATIONS = 4
"""Activations may take one part in so many of the memory; weights, gradients, optimiser and what is drawn share the rest."""


def fitting_tokens(model: Any) -> int:
    """How many tokens a pass of this model may hold on its device: the most of 16384, 8192, 4096 ... that fit, 512 at least."""
    room = memory_of(model.device) // SHARE_OF_ACTIVATIONS
    tokens = Settings.micro_tokens
    while tokens > 512 and model.activation_bytes(tokens) > room:
        tokens //= 2
    return tokens


class Ops:
    """Rollout, score, collate, update and evaluate, for one run. Holds the optimisers and the position in the data."""

    def __init__(self, recipe: Recipe, run: Run, task: Task, settings: Settings):
        self.recipe, self.run, self.task, self.settings = recipe, run, task, settings
        self.position = settings.start
        self.seconds: dict[str, float] = {}
        self.latest: tuple[list[Group], Scores, Batch] | None = None
        self.learnings: dict[str, Learning] = {}
        if recipe.objective is not None:
            self.learnings["policy"] = Learning.of(run.policy, recipe.update)
        for learner in recipe.also:
            self.learnings[learner.name] = Learning.of(run.models[learner.name], learner.recipe.update)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[what] = self.seconds.get(what, 0.0) + time.perf_counter() - start

    def problems(self, n: int | None = None) -> list[Problem]:
        """The next n training problems."""
        n = n or self.recipe.update.problems
        found = [self.task.train[self.position + i] for i in range(n)]
        self.position += n
        return found

    def rollout(self, problems: list[Problem], recipe: Recipe | None = None, name: str = "policy") -> list[Group]:
        """Groups drawn by the policy, or by the learner `name`."""
        part = (recipe or self.recipe).rollout
        if part is None:
            raise RewardlabError(f"{self.recipe.name or 'the recipe'} has no rollout; it cannot be trained")
        run = self.run if name == "policy" else replace(self.run, policy=self.run.models[name])
        run.policy.step = self.run.step
        if name in self.learnings:
            self.learnings[name].draws(self.run.step)
        if rank():
            run = replace(run.detached(), seed=seed_of(run.seed, "process", rank()))
        with self.timed("generate"):
            # what remembers, or looks across problems, cannot be shared out
            if part.traits.get("whole"):
                return shared(lambda: part(problems, run))
            return spread(lambda share: part(share, run), problems)

    def score(self, groups: list[Group], recipe: Recipe | None = None) -> Scores | None:
        """Scores of every trajectory, checked; None if the recipe has no reward."""
        part = (recipe or self.recipe).reward
        if part is None:
            return None
        with self.timed("reward"):
            scores = shared(lambda: part(groups, self.run))
            check_finite(groups, scores, str(part))
            if recipe is None or recipe is self.recipe:
                self._watch(groups, scores)
        return scores

    def collate(self, groups: list[Group], scores: Scores | None, recipe: Recipe | None = None, author: str = "policy") -> Batch:
        """The batch with the columns that parts need, and its credit."""
        recipe = recipe or self.recipe
        with self.timed("train"):
            batch = collating.collate(groups, scores, self.run.policy.device, author)
            # learners that take the policy's batch find their columns in it
            needs = dict.fromkeys(self.recipe.needs if recipe is self.recipe else recipe.needs)
            per_token = recipe.objective.per_token if recipe.objective else ()
            collating.add_columns(batch, list(needs), self.run, self.settings.micro_tokens, per_token)
            batch.credit = self.credit(batch, recipe)
        if recipe is self.recipe:
            self.latest = (groups, scores or [], batch)
        return batch

    def credit(self, batch: Batch, recipe: Recipe):
        return recipe.credit(batch.reward, batch, self.run) if recipe.credit else batch.reward

    def update(self, batch: Batch, recipe: Recipe | None = None, name: str = "policy") -> None:
        """The optimiser steps of one batch on the model `name`."""
        with self.timed("train"):
            found = update(self.learnings[name], batch, recipe or self.recipe, self.run, self.settings.micro_tokens)
        prefix = "" if name == "policy" else f"{name}/"
        for key, value in found.items():
            self.run.log(prefix + key, value)

    def learn(self, learner: Learner, batch: Batch, groups: list[Group], scores: Scores | None) -> None:
        """Update a learner on the policy's batch with its own credit, or on tasks of its own."""
        if learner.problems is None:
            own = replace(batch, credit=self.credit(batch, learner.recipe), columns=dict(batch.columns))
        else:
            made = self.rollout(learner.problems(groups, scores, self.run), learner.recipe, learner.name)
            own = self.collate(made, self.score(made, learner.recipe), learner.recipe, learner.name)
        self.update(own, learner.recipe, learner.name)

    def evaluate(self, problems: Sequence[Problem] | None = None) -> dict[str, float]:
        """The recipe's measure on held-out problems."""
        problems = self.task.test[: self.settings.eval_problems] if problems is None else problems
        if self.recipe.measure is None or not problems:
            return {}
        spent = self.run.take_spent()
        with self.timed("evaluate"):
            found = self.recipe.measure(problems, self.run.detached())
        self.run.take_spent()  # what only looks on is not on the method's budget
        self.run.policy.spent.generated += spent
        leading = next(iter(found))
        if not math.isfinite(found[leading]):
            raise NotFinite(
                f"{self.recipe.measure} gave {leading} = {found[leading]} at step {self.run.step}: that finds no best policy"
            )
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def reset_optimizer(self, name: str = "policy") -> None:
        learning = self.learnings[name]
        learning.optimiser = new_optimiser(learning.model, self.recipe.update)

    def _watch(self, groups: list[Group], scores: Scores) -> None:
        """Log rewards; stop the run when verdicts are missing, or a reward has never varied."""
        flat = [s for row in scores for s in row]
        missing = [s for s in flat if s.missing]
        self.run.log("missing", len(missing) / max(1, len(flat)))
        if len(missing) > self.settings.max_missing * len(flat):
            why = next((s.why for s in missing if s.why), "the reward gave no reason")
            raise RewardlabError(f"{len(missing)} of {len(flat)} rollouts got no verdict at step {self.run.step + 1}: {why}")
        totals = [s.total for s in flat if s.total is not None]
        self.run.log("reward", float(np.mean(totals)))
        for name in dict.fromkeys(n for s in flat for n in s.terms):
            terms = [t for s in flat if (t := s.terms.get(name)) and (t.value is not None or t.steps)]
            values = [t.value if t.value is not None else sum(r for _, r in t.steps) for t in terms]
            if values:
                self.run.log(f"reward/{name}", float(np.mean(values)))
        self._watch_constant(totals)

    def _watch_constant(self, totals: list[float]) -> None:
        varied = self.run.memory.get("engine.varied", False) or len(set(totals)) > 1
        self.run.memory["engine.varied"] = varied
        if not varied and 0 < self.settings.patience <= self.run.step + 1:
            raise RewardlabError(
                f"every rollout of the first {self.run.step + 1} steps earned {totals[0]:g}: there is nothing to learn from. "
                "Look at the rollouts in the run folder: is the reward broken, or the task too hard or too easy?"
            )


def truth_of(groups: list[Group], scores: Scores, run: Run) -> list[list[float | None]]:
    """What the task's own verifier says of the training rollouts, whatever the policy was rewarded with."""
    if scores and all("correct" in s.terms for row in scores for s in row):
        return [[s.terms["correct"].value for s in row] for row in scores]
    if run.verify is None:
        return [[None] * len(g) for g in groups]
    return [[s.value for s in row] for row in run.verify(groups, run.detached())]


def standard_loop(recipe: Recipe, run: Run, ops: Any) -> None:
    """One step of almost every method: rollout, reward, credit, update."""
    groups = ops.rollout(ops.problems())
    scores = ops.score(groups)
    batch = ops.collate(groups, scores)
    if recipe.objective is not None:
        ops.update(batch)
    for learner in recipe.also:
        if learner.every and run.step % learner.every == 0:
            ops.learn(learner, batch, groups, scores)
