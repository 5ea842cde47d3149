"""The learning rate of a model: the recipe's, else a default for the model and the loss.

A rate at which a policy of a million fresh weights learns destroys a pretrained one in a few steps. So a recipe names the kind of
its loss (`Update.loss_kind`), and the rate is looked up here, for the model that it is to train:

- reward, all weights: 1e-6, as in TRL's GRPOConfig and for verl's actor; adapters ten times as much, as for all kinds: Schulman et
  al. 2025, "LoRA without regret", find ten times the rate of all weights best.
- imitation: 1e-5 and 1e-4 with adapters; verl's SFT trainer has 1e-5, TRL's SFTConfig 2e-5.
- preference: 5e-7 and 5e-6, as in alignment-handbook's recipes zephyr-7b-beta (dpo/config_full.yaml, config_qlora.yaml).
- scorer (heads and models that learn labels, returns or pairs): 1e-5, as verl's critic, and 1e-4, TRL's RewardConfig.

Small policies take the rates that suit this package's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.core import Recipe, Run, Update
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.util.progress import console

SMALL = 10_000_000
"""Weights below which a model is one of our small ones; the smallest pretrained language models in use have ten times as many."""
ADAPTED = 0.25
"""A model of which no larger share trains learns by adapters (or by a head alone)."""


class Rates(NamedTuple):
    """Learning rates of a kind of loss: for small models, and for pretrained ones with all their weights or with adapters."""

    small: float
    whole: float
    adapters: float


RATES = {
    "reward": Rates(3e-4, 1e-6, 1e-5),
    "imitation": Rates(1e-3, 1e-5, 1e-4),
    "preference": Rates(1e-4, 5e-7, 5e-6),
    "scorer": Rates(1e-3, 1e-5, 1e-4),
}
"""By `Update.loss_kind`."""


def rate_of(update: Update, model: Any) -> float:
    """The learning rate at which a model learns by this update."""
    if update.lr is not None:
        return update.lr
    rates = RATES[update.loss_kind]
    if update.small_lr is not None:
        rates = rates._replace(small=update.small_lr)
    return getattr(rates, _family(model))


def pretrained_rate(update: Update) -> float:
    """The rate at which all weights of a pretrained model learn."""
    return update.lr if update.lr is not None else RATES[update.loss_kind].whole


def with_rate(update: Update, model: Any) -> Update:
    """The update with its learning rate filled in."""
    return update if update.lr is not None else replace(update, lr=rate_of(update, model))


def with_rates(recipe: Recipe, run: Run) -> Recipe:
    """The recipe with the learning rates of the policy and of the run's other models filled in."""
    also = tuple(
        replace(learner, recipe=learner.recipe.but(update=with_rate(learner.recipe.update, run.models[learner.name])))
        if learner.recipe.update.lr is None and learner.name in run.models else learner
        for learner in recipe.also
    )  # fmt: skip
    if also == recipe.also and recipe.update.lr is not None:
        return recipe
    return recipe.but(update=with_rate(recipe.update, run.policy), also=also)


def told(recipe: Recipe, policy: Any, models: Mapping[str, Any]) -> dict[str, str]:
    """The rate of each model that learns, by name, in words: how much it is, and where it comes from.

    A second learner that is not among the models is as large as the policy, if it begins as the policy.
    """
    rows = {}
    if recipe.objective is not None:
        rows["policy"] = _words(recipe.update, policy, "; --lr sets it") + _imitation(recipe, policy)
    for learner in recipe.also:
        if learner.recipe.objective is not None and learner.every:
            model = models.get(learner.name, policy if learner.init.startswith(("copy:policy", "value-head")) else None)
            rows[learner.name] = _words(learner.recipe.update, model)
            if (scale := _scale(recipe, learner.name)) is not None:
                rows[learner.name] = f"lr {scale * rate_of(recipe.update, policy):g}: {scale:g} times the policy's"
    return rows


def _scale(recipe: Recipe, learner: str) -> float | None:
    """What multiple of the policy's rate a loop gives to a second learner; None where it has its own."""
    loops = recipe.loop.walk() if recipe.loop is not None else ()
    return next(
        (
            loop.settings["model_lr_scale"]
            for loop in loops
            if loop.settings.get("model") == learner and "model_lr_scale" in loop.settings
        ),
        None,
    )


def say_rates(recipe: Recipe, policy: Any, models: Mapping[str, Any]) -> None:
    """Print what `told` says, a line a model."""
    if is_rank_zero():
        for name, words in told(recipe, policy, models).items():
            console.print(f"{name}: {words}", highlight=False, soft_wrap=True)


def _words(update: Update, model: Any, how: str = "") -> str:
    if update.lr is not None:
        # by whoever trains, by the method, or by a command for the model: a recipe keeps the number alone
        return f"lr {update.lr:g}: as the recipe says"
    if model is None:
        return f"lr: what suits the model that it begins as, for a loss of the kind {update.loss_kind}"
    family = {"small": "small model", "whole": "pretrained, all weights", "adapters": "pretrained, adapters"}[_family(model)]
    return f"lr {rate_of(update, model):g}: {family}{how}"


def _imitation(recipe: Recipe, policy: Any) -> str:
    """Of a recipe some of whose steps imitate, at a rate of their own: at which."""
    loop = recipe.loop
    while loop is not None and "sft_lr_scale" not in loop.settings:
        loop = loop.settings.get("inner")
    if loop is None or loop.settings.get("first") == 0:
        return ""
    return f"; steps that imitate take {loop.settings['sft_lr_scale'] * rate_of(recipe.update, policy):g}"


def _family(model: Any) -> str:
    """The field of `Rates` that holds for a model."""
    weights = [(p.numel(), p.requires_grad) for p in model.parameters()]
    total, trained = sum(n for n, _ in weights), sum(n for n, trains in weights if trains)
    if total < SMALL:
        return "small"
    return "adapters" if trained <= ADAPTED * total else "whole"
