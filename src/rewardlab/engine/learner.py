"""The engine's state of each learning model: recipe, optimiser, and number of updates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rewardlab.core import Part, Recipe, Run, Update
from rewardlab.engine.rates import rate_of
from rewardlab.runs.config import MICRO_TOKENS
from rewardlab.util.device import memory_of
from rewardlab.util.lockstep import LOCKSTEP
from rewardlab.util.sharded import is_divided, whole

POLICY = "policy"
SHARE_OF_ACTIVATIONS = 4
"""Activations may take one part in so many of the memory; weights, gradients, optimiser and rollouts share the rest."""


@dataclass(eq=False)
class LearnerState:
    """A learner at work: the policy, a critic, a reward model, an opponent.

    recipe: how it learns.  optimiser: None for a policy whose recipe has no objective.  problems, every: as in `core.Learner`;
    problems(groups, scores, run) returns problems of its own to train on; every = 0 freezes it.  updates: optimiser steps so far.
    init: what a second model was made from.  began: sums of its weights then, where it never learns.  digest: their hash.
    sampled_at: (training step, updates) when the model first sampled in the latest training step in which it did.
    """

    name: str
    model: Any
    recipe: Recipe
    optimiser: torch.optim.Optimizer | None
    problems: Part | None = None
    every: int = 1
    updates: int = 0
    init: str = ""
    began: dict[str, tuple[float, float]] | None = None
    digest: str = ""
    sampled_at: tuple[int, int] = (-1, -1)  # -1 is no training step: nothing was sampled yet

    def __post_init__(self) -> None:
        divided = self.optimiser is not None and any(map(is_divided, self.model.parameters()))
        self.gather = LOCKSTEP.add(self._whole_state) if divided else None

    def begin(self) -> None:
        """Note the weights of a second model that never learns, so that a change of them is seen."""
        self.began = sums(self.model)

    @property
    def is_policy(self) -> bool:
        return self.name == POLICY

    @property
    def temperature(self) -> float:
        """That its rollouts are sampled at, if it learns by a policy gradient: it ascends the reward of what is sampled only if its
        log-probs are those of softmax(logits / temperature), as TRL, verl and OpenRLHF compute them.

        1 where replies are greedy, for a model that has none, and without advantages (imitation, preferences).
        """
        if self.recipe.credit is None or not hasattr(self.model, "temperature"):
            return 1.0
        return float(self.recipe.sampling_settings.get("temperature", 1.0)) or 1.0

    def due(self, step: int) -> bool:
        """Whether it learns in this training step."""
        return self.every > 0 and step % self.every == 0 and self.optimiser is not None

    def note_sampling(self, step: int) -> None:
        """Remember with which weights this training step's sampling began."""
        if self.sampled_at[0] != step:
            self.sampled_at = (step, self.updates)

    def unchanged_since_sampling(self, step: int) -> bool:
        """Whether this step's rollouts were sampled with the weights that the model has now."""
        return self.sampled_at == (step, self.updates)

    def reset_optimizer(self) -> None:
        """Start over with zero moments, as after a change of weights that the optimiser did not make."""
        self.optimiser = new_optimiser(self.model, self.recipe.update)

    def optimiser_state(self) -> dict[str, torch.Tensor]:
        """The optimiser's moments and step counts, whole, as NUMBER.NAME of the parameters that train.

        No more than these: the learning rate is set anew at every update, all else follows from the recipe.
        """
        if self.gather is not None:
            LOCKSTEP.take_turn(self.gather)
        return self._whole_state()

    def _whole_state(self) -> dict[str, torch.Tensor]:
        state = self.optimiser.state_dict()["state"] if self.optimiser else {}
        return {f"{i}.{k}": whole(torch.as_tensor(v)).cpu() for i, entry in state.items() for k, v in entry.items()}


def learners_of(recipe: Recipe, run: Run) -> dict[str, LearnerState]:
    """The learners of a run by name, the policy first."""
    optimiser_of_policy = None if recipe.objective is None else new_optimiser(run.policy, recipe.update)
    learners = {POLICY: LearnerState(POLICY, run.policy, recipe, optimiser_of_policy)}
    for second in recipe.also:
        model, optimiser = run.models[second.name], new_optimiser(run.models[second.name], second.recipe.update)
        state = LearnerState(second.name, model, second.recipe, optimiser, second.problems, second.every, init=second.init)
        if second.every == 0 and optimiser is not None:
            state.begin()
        learners[second.name] = state
    return learners


def sums(model: Any) -> dict[str, tuple[float, float]]:
    """Two sums of each weight that trains, by name: they tell a change at a small part of what a hash costs."""
    return {name: (float(x.sum(dtype=torch.float64)), float(x.norm(dtype=torch.float64))) for name, x in model.state().items()}


def new_optimiser(model: Any, update: Update) -> torch.optim.Optimizer | None:
    """AdamW over the weights that train; None if there are none. Its learning rate is set anew before each update."""
    # with LoRA most parameters are frozen: AdamW must not keep moments for them
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        return None
    return torch.optim.AdamW(
        trained, lr=rate_of(update, model), betas=(update.beta1, update.beta2), weight_decay=update.weight_decay, fused=True
    )


def learning_rate(update: Update, progress: float, step: int) -> float:
    """Linear warm-up over `warmup` training steps, then linear to `lr_end * lr`; of an update whose rate is known."""
    # step + 1: with step alone, the first update would have a rate of 0 and change nothing
    ramp = min(1.0, (step + 1) / update.warmup) if update.warmup else 1.0
    return update.rate * ramp * (1.0 + (update.lr_end - 1.0) * progress)


def fitting_tokens(model: Any, memory: int | None = None) -> int:
    """How many tokens a pass of this model may hold on its device: the most of 16384, 8192, 4096 ... that fit, 512 at least.

    memory: bytes of the device (default: those of the model's own).
    """
    available = (memory or memory_of(model.device)) // SHARE_OF_ACTIVATIONS
    tokens = MICRO_TOKENS
    # halved, not computed exactly: sizes that recur let kernels be reused, and the estimate is rough anyway
    while tokens > 512 and model.activation_bytes(tokens) > available:
        tokens //= 2
    return tokens
