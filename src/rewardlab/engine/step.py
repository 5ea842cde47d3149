"""The operations of a training step. Methods with their own loop call these operations, and do not re-implement training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from torch import Tensor

from rewardlab.core import Batch, Group, Problem, Recipe, Run, Scores, Task, check_finite
from rewardlab.engine import collate as collating
from rewardlab.engine.bill import Bill
from rewardlab.engine.distributed import all_gather, map_sharded, on_rank_zero, rank
from rewardlab.engine.further import further_problems
from rewardlab.engine.learner import LearnerState, learners_of
from rewardlab.engine.logged import Part, log_together, logged_apart, made_by_first
from rewardlab.engine.overlong import Left, NothingFits, leave_out, measured, note_left, scored, shared_out
from rewardlab.engine.rates import with_rates
from rewardlab.engine.update import update
from rewardlab.engine.verdicts import Row, asked, asked_by_first, remember, told
from rewardlab.engine.watch import watch_rewards
from rewardlab.errors import NotFinite, RewardlabError
from rewardlab.runs.config import RunConfig
from rewardlab.util.keeping import keeping
from rewardlab.util.tempered import tempered

T = TypeVar("T")


class StepData(NamedTuple):
    """The policy's rollouts of a step, their scores ([] without a reward) and its batch: what is logged and recorded."""

    groups: list[Group]
    scores: Scores
    batch: Batch


class Ops:
    """Rollout, score, collate, update and evaluate, for one run; each for a learner, the policy unless another is given.

    learners: by name, `policy` first.  position: in the training data.  refills: whether rollouts may draw further problems.
    reference_is_new: whether it is still to be saved.  step_data: the policy's newest rollouts.  seconds: of this step, by phase.
    bill: of the tokens that all models compute.
    """

    def __init__(self, recipe: Recipe, run: Run, task: Task, settings: RunConfig):
        self.recipe, self.run, self.task, self.settings = with_rates(recipe, run), run, task, settings.settled()
        self.learners = learners_of(self.recipe, run)
        self.policy = next(iter(self.learners.values()))
        self.position, self.refills, self.reference_is_new = settings.start, True, True
        self.step_data: StepData | None = None
        self.seconds: dict[str, float] = {}
        self.bill = Bill(run)

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        # added up: a method's loop may run a phase several times in a step
        self.seconds[phase] = self.seconds.get(phase, 0.0) + time.perf_counter() - start

    def problems(self, n: int | None = None) -> list[Problem]:
        """The next n training problems."""
        n = n or self.recipe.update.problems
        problems = [self.task.train[self.position + i] for i in range(n)]
        self.position += n
        return problems

    def rollout(self, problems: list[Problem], learner: LearnerState | None = None) -> list[Group]:
        """Groups sampled by a learner."""
        learner = learner or self.policy
        part = learner.recipe.rollout
        if part is None:
            raise RewardlabError(f"{self.recipe.name or 'the recipe'} has no rollout; it cannot be trained")
        run = self.run if learner.is_policy else replace(self.run, policy=learner.model)
        # sampled turns record the step of the weights that sampled them
        run.policy.step = self.run.step
        learner.note_sampling(self.run.step)
        if rank():
            # rank zero keeps the streams of a single process; the others have their own, or all would sample the same replies.
            # The seed is that of all: a judge with errors keyed by it must be the one that the reward asks
            run = replace(run.detached(), process=rank())
        with self.timed("generate"), self.bill.sharded(), further_problems(self, run, learner, part.across_problems):
            # a rollout that keeps a memory, or compares problems, must see all of them: it cannot be sharded
            out: list[Left] = []
            logged: list[Part] = []

            def sample(own: list[Problem]) -> list[tuple[Group, Row]]:
                with keeping(run.policy), logged_apart(run, len(own), logged):
                    groups, left = shared_out(part, own, run, self._context(learner))
                out.append(left)
                return list(zip(groups, told(groups, run), strict=True))

            alone = part.across_problems
            rows = made_by_first(lambda: sample(problems), self.run) if alone else map_sharded(sample, problems)
        groups = [group for group, _ in rows]
        remember(groups, [row for _, row in rows], self.run)
        log_together(logged, self.run)
        note_left([left for of_rank in all_gather(out) for left in of_rank], groups, problems, self.run)
        return groups

    def _context(self, learner: LearnerState) -> int:
        """The most tokens that all can read who learn from what this learner's rollout gives."""
        others = [x.model for x in self.learners.values() if learner.is_policy and x.problems is None]
        return min(getattr(model, "context", 1 << 60) for model in (learner.model, *others))

    def score(self, groups: list[Group], learner: LearnerState | None = None) -> Scores | None:
        """Scores of every trajectory, checked; None if the learner's recipe has no reward.

        Groups that are too long for a model which judges them are taken out of `groups`, and have no scores.
        """
        learner = learner or self.policy
        part = learner.recipe.reward
        if part is None:
            return None
        with self.timed("reward"):
            # on one rank: a judge or a sandbox is asked once, and all ranks learn from the same numbers
            scores, unread, verdicts = made_by_first(lambda: (*scored(part, groups, self.run), told(groups, self.run)), self.run)
            remember(groups, verdicts, self.run)
            leave_out(groups, unread, self.run)
            check_finite(groups, scores, str(part))
            if learner.is_policy:
                watch_rewards(self.run, self.settings, groups, scores)
        return scores

    def verdicts(self, groups: list[Group]) -> Scores:
        """What the task's verifier says of these rollouts, to every rank the same."""
        return asked(groups, self.run)

    def collate(
        self, groups: list[Group], scores: Scores | None, learner: LearnerState | None = None, author: str | None = None
    ) -> Batch:
        """A learner's batch with the columns that its parts need, and its credit.

        author: whose decisions it learns from (default: its own). A column that no part declares cannot be read, except `old`,
        which is then NaN where it was not recorded.
        """
        learner = learner or self.policy
        recipe = learner.recipe
        with self.timed("train"):
            batch = collating.collate(groups, scores, self.run.policy.device, author or learner.name, self.temperature(learner))
            per_token = recipe.objective.per_token if recipe.objective else ()
            with self.bill.sharded(), self.as_sampled(learner):
                # the policy's recipe also names what learners that take its batch need
                collating.add_columns(batch, recipe.needs, self.run, self.settings.micro_tokens, per_token)
            with self.as_sampled(learner):
                batch.credit = self.credit(batch, learner)
        if learner.is_policy:
            self.step_data = StepData(groups, scores or [], batch)
        return batch

    def once(self, make: Callable[[], T]) -> T:
        """What one process makes for all, such as texts that a method's loop samples by itself, not by `rollout`.

        Made by each process they might differ: samples in rounding, which GPUs do otherwise, and judges from call to call.
        """
        return made_by_first(make, self.run)

    def credit(self, batch: Batch, learner: LearnerState | None = None) -> Tensor:
        """(B, T): the learner's credit chain on the batch's rewards."""
        chain = (learner or self.policy).recipe.credit
        if chain is None:
            return batch.reward
        with asked_by_first(self.run):
            return chain(batch.reward, batch, self.run)

    def temperature(self, learner: LearnerState) -> float:
        """That of the rollouts which a learner learns from: its own, or the policy's."""
        return (self.policy if learner.recipe.rollout is None else learner).temperature

    def as_sampled(self, learner: LearnerState) -> AbstractContextManager[None]:
        """In this context log-probs are those at the temperature of a learner's rollouts: of all models."""
        models = (self.run.policy, self.run.reference, *self.run.models.values())
        return tempered(self.temperature(learner), *models)

    def update(self, batch: Batch, learner: LearnerState | None = None) -> None:
        """A learner's optimiser steps on one batch."""
        learner = learner or self.policy
        with self.timed("train"), self.bill.sharded(), self.as_sampled(learner):
            metrics = update(learner, batch, self.run, self.settings.micro_tokens)
        prefix = "" if learner.is_policy else f"{learner.name}/"
        for key, value in metrics.items():
            self.run.log(prefix + key, value)

    def learn(self, learner: LearnerState, batch: Batch, groups: list[Group], scores: Scores | None) -> None:
        """Update a second learner on the policy's rollouts, with its own reward and credit, or on rollouts of its own problems.

        Where it can read nothing of this step, it learns nothing from it, which `overlong` counts.
        """
        with suppress(NothingFits):
            if (own := self._batch_of(learner, batch, groups, scores)) is not None:
                self.update(own, learner)

    def _batch_of(self, learner: LearnerState, batch: Batch, groups: list[Group], scores: Scores | None) -> Batch | None:
        """What a second learner learns from; None where nothing of this step teaches it."""
        own = any(turn.author == learner.name for group in groups for t in group for turn in t.turns)
        if learner.problems is None and own:
            # rewards fall on the decisions of who learns
            of = list(groups)
            return self.collate(of, scores if learner.recipe.reward is None else self.score(of, learner), learner)
        if learner.problems is None and learner.recipe.reward is not None:
            # what the policy is paid with teaches it nothing: these rewards are the labels that it is to learn
            of = list(groups)
            return self.collate(of, self.score(of, learner), learner, author=self.policy.name)
        if learner.problems is None:
            # the columns are copied: its update writes its own loss weights there
            return replace(batch, credit=self.credit(batch, learner), columns=dict(batch.columns))
        # verdicts and judges may tell each rank something else
        problems = made_by_first(partial(learner.problems, groups, scores, self.run), self.run)
        if not problems:
            # a batch without rows cannot be padded
            return None
        rollouts = self.rollout(problems, learner)
        return self.collate(rollouts, self.score(rollouts, learner), learner)

    def learn_due(self, batch: Batch, groups: list[Group], scores: Scores | None) -> None:
        """Update every second learner whose turn it is."""
        for learner in self.learners.values():
            if not learner.is_policy and learner.due(self.run.step):
                self.learn(learner, batch, groups, scores)

    def standard_step(self, recipe: Recipe) -> None:
        """One step of `standard_loop`, in which the policy learns by a recipe that may be another than its own.

        It takes as many problems as the run's recipe says, whatever this one does.
        """
        own, self.policy.recipe = self.policy.recipe, recipe
        try:
            standard_loop(recipe, self.run, self)
        finally:
            self.policy.recipe = own

    def learn_besides(self, groups: list[Group], scores: Scores, recipe: Recipe, prefix: str) -> None:
        """An update of the policy on further rollouts, as those of earlier steps, by a recipe of their own.

        What it logs is named prefix/...; the step's rollouts and metrics stay those that the policy sampled in it.
        """
        own, data, metrics = self.policy.recipe, self.step_data, self.run.metrics
        self.policy.recipe, self.run.metrics = recipe, {}
        try:
            self.update(self.collate(groups, scores))
        finally:
            self.policy.recipe, self.step_data = own, data
            self.run.metrics = metrics | {f"{prefix}/{name}": value for name, value in self.run.metrics.items()}

    def new_stage(self) -> None:
        """Begin a stage of training: with a fresh optimiser, and with the policy as it is now as the reference, if there is one.

        A loop calls it before the first step of the stage, which comes even where the last step of the stage before was left out.
        """
        # what the last stage left in the optimiser is of another loss, and a KL to what was before that stage would undo it
        self.policy.reset_optimizer()
        if self.run.reference is not None:
            self.run.reference.load_state(self.run.policy.state())
            self.reference_is_new = True

    def evaluate(self, problems: Sequence[Problem] | None = None) -> dict[str, float]:
        """The recipe's measure on held-out problems, by rank zero for all. It counts towards no budget."""
        problems = self.task.test[: self.settings.eval_problems] if problems is None else problems
        if self.recipe.measure is None or not problems:
            return {}
        with self.timed("evaluate"), self.run.unbilled(), keeping(self.run.policy):
            # a method's loop may decide by these numbers, and all ranks must decide alike
            metrics = on_rank_zero(partial(measured, self.recipe.measure, problems, self.run.for_evaluation()))
        # the first metric selects the best model
        leading = next(iter(metrics))
        if not math.isfinite(metrics[leading]):
            raise NotFinite(
                f"{self.recipe.measure} gave {leading} = {metrics[leading]} at step {self.run.step}: no best policy can be selected"
            )
        # any other metric may be undefined (a rate over no cases): it is left out of the log
        return {name: value for name, value in metrics.items() if math.isfinite(value)}


def standard_loop(recipe: Recipe, run: Run, ops: Ops) -> None:
    """One step of almost every method: rollout, reward, credit, update."""
    groups = ops.rollout(ops.problems())
    scores = ops.score(groups)
    batch = ops.collate(groups, scores)
    # without an objective the policy is only sampled, and second learners alone learn
    if recipe.objective is not None:
        ops.update(batch)
    ops.learn_due(batch, groups, scores)
