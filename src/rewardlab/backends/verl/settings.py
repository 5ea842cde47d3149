"""A recipe as verl's configuration, and the recipe's terms that are verl's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rewardlab.core import Credit, Learner, Objective, Recipe, Rollout
from rewardlab.core.slots import Chain
from rewardlab.engine.rates import pretrained_rate

NAME = "rewardlab"
"""What the recipe's estimator and loss are called in verl's registries."""
AGGREGATED = {"token_mean": "token-mean", "row_mean": "seq-mean-token-mean", "constant_length": "seq-mean-token-sum-norm"}
"""Our weights of tokens, and verl's modes that are the same."""
KL, ENTROPY, KL_IN_REWARD = "kl_to_reference", "negative_entropy", "less_kl"
"""Our parts that verl has itself, where its hooks are not given what they read."""


def own_terms(objective: Objective) -> Iterator[tuple[float, Objective]]:
    """The terms of an objective that are computed in our policy loss."""
    return ((scale, leaf) for scale, leaf in objective.terms() if leaf.name not in (KL, ENTROPY))


def coefficient(objective: Objective, name: str) -> float:
    """The factor of the terms of this name, 0 without any."""
    return sum(scale for scale, leaf in objective.terms() if leaf.name == name)


def chain_of(credit: Credit | None) -> list[Credit]:
    """The credits of a chain, in order."""
    parts: Any = credit.of if isinstance(credit, Chain) else (credit,)
    return [] if credit is None else list(parts)


def credit_of(recipe: Recipe) -> Credit | None:
    """The credit without the KL that verl subtracts from the rewards itself; None: the rewards are the credit."""
    parts = chain_of(recipe.credit)
    if kl_in_reward(recipe):
        del parts[0]
    return Chain.join(*parts) if len(parts) > 1 else parts[0] if parts else None


def kl_in_reward(recipe: Recipe) -> float:
    """beta of the KL that is a part of the reward; 0 without one."""
    first = chain_of(recipe.credit)[:1]
    return float(first[0].settings["beta"]) if first and first[0].name == KL_IN_REWARD else 0.0


def by_verl(recipe: Recipe) -> dict[str, float]:
    """gamma and lam where the credit is verl's own `gae`, with a critic that learns as verl's does; empty for every other.

    verl hands the values of a critic to no other estimator.
    """
    chain = chain_of(credit_of(recipe))
    if [part.name for part in chain] != ["gae", "whiten"] or len(recipe.also) != 1 or not _is_critic(recipe.also[0], recipe):
        return {}
    return {"gamma": float(chain[0].settings["gamma"]), "lam": float(chain[0].settings["lam"])}


def _is_critic(learner: Learner, recipe: Recipe) -> bool:
    """Whether a learner is what verl calls the critic: a value head taught the lambda returns of the policy's own rewards."""
    own = learner.recipe
    target, advantage = chain_of(credit_of(own)), chain_of(credit_of(recipe))[0]
    return (
        (learner.name, learner.init, learner.problems, learner.every) == ("critic", "value-head", None, 1)
        and [part.name for part in target] == ["lambda_return"]
        and dict(target[0].settings) == dict(advantage.settings)
        and kl_in_reward(own) == kl_in_reward(recipe)
        and own.objective is not None
        and own.objective.name == "value_error"
        and own.weighting is not None
        and own.weighting.name == "token_mean"
        and (own.update.epochs, own.update.minibatches) == (recipe.update.epochs, recipe.update.minibatches)
    )


def filter_of(rollout: Rollout) -> Rollout | None:
    """The filter of groups around a rollout that is verl's `filter_groups`; None without one."""
    is_filter = rollout.name == "solved_between" and rollout.settings["low"] > 0 and rollout.settings["high"] < 1
    return rollout if is_filter and rollout.settings["attempts"] > 1 else None


def overrides(recipe: Recipe, *, steps: int, max_new: int) -> dict[str, Any]:
    """What verl's configuration says for this recipe, nested as there."""
    assert recipe.objective is not None
    assert recipe.rollout is not None
    update, sampling = recipe.update, recipe.sampling_settings
    kl, in_reward = coefficient(recipe.objective, KL), kl_in_reward(recipe)
    gae = by_verl(recipe)
    algorithm = {
        "adv_estimator": "gae" if gae else NAME, **gae, "use_kl_in_reward": bool(in_reward),
        **({"kl_penalty": "kl", "kl_ctrl": {"type": "fixed", "kl_coef": in_reward}} if in_reward else {}),
    }  # fmt: skip
    if filter_of(recipe.rollout):
        # verl drops the groups whose replies are all right or all wrong, and samples further prompts
        algorithm["filter_groups"] = {"enable": True, "metric": "acc"}
    weighting = recipe.weighting
    mode = AGGREGATED["token_mean" if weighting is None else weighting.name]
    # a length of 0 stands for the longest reply
    length = (weighting.settings["length"] or max_new) if weighting and weighting.name == "constant_length" else None
    actor = {
        **batches(recipe), "policy_loss": {"loss_mode": NAME}, "loss_agg_mode": mode, "loss_scale_factor": length,
        # verl subtracts the entropy times its coefficient, as we add minus the entropy
        "entropy_coeff": coefficient(recipe.objective, ENTROPY),
        "use_kl_loss": bool(kl), **({"kl_loss_coef": kl, "kl_loss_type": "low_var_kl"} if kl else {}), "optim": optimiser(recipe),
    }  # fmt: skip
    # verl names no sampler itself, and does not start without one
    replies = {"name": "vllm", "n": sampling["n"], "temperature": sampling["temperature"], "top_p": sampling["top_p"]}
    manager = {"source": "importlib", "name": "RecipeRewards", "module": {"path": "pkg://rewardlab_recipe"}}
    return {
        "algorithm": algorithm,
        "data": {"train_batch_size": update.problems, "max_response_length": max_new},
        # verl says -1 for no limit
        "actor_rollout_ref": {"actor": actor, "rollout": {**replies, "top_k": sampling["top_k"] or -1}},
        "reward": {"reward_manager": manager},
        **({"critic": critic(recipe)} if gae else {}),
        "trainer": {"total_training_steps": steps, "project_name": "rewardlab", "experiment_name": recipe.name or "recipe"},
    }  # fmt: skip


def batches(recipe: Recipe) -> dict[str, Any]:
    update = recipe.update
    return {
        "ppo_mini_batch_size": update.problems // update.minibatches, "ppo_epochs": update.epochs, "use_dynamic_bsz": True,
        "shuffle": update.minibatches > 1,
    }  # fmt: skip


def optimiser(recipe: Recipe) -> dict[str, Any]:
    update = recipe.update
    return {
        "lr": pretrained_rate(update), "weight_decay": update.weight_decay, "betas": [update.beta1, update.beta2],
        "clip_grad": update.clip_norm, "lr_warmup_steps": update.warmup,
    }  # fmt: skip


def critic(recipe: Recipe) -> dict[str, Any]:
    """The critic of a recipe whose credit is verl's `gae`."""
    own = recipe.also[0].recipe
    clip = own.objective.settings["clip"] if own.objective else None
    # verl knows no loss without clipping: a range that no value leaves
    sizes = batches(own.but(problems=recipe.update.problems))
    model = {"path": "${actor_rollout_ref.model.path}"}
    return {**sizes, "model": model, "cliprange_value": clip or 1e9, "loss_agg_mode": "token-mean", "optim": optimiser(own)}


def differences(recipe: Recipe) -> list[str]:
    """What verl does otherwise than the embedded engine with this recipe, for the user to know."""
    found = []
    if recipe.sampling_settings.get("temperature", 1.0) not in (0.0, 1.0) and recipe.credit is None:
        found.append("verl divides the logits by the temperature in the loss too; rewardlab does where there are advantages")
    if recipe.update.lr is None:
        found.append(
            f"lr is {pretrained_rate(recipe.update):g}, for all weights of a pretrained model; adapters take ten times as much"
        )
    if recipe.update.lr_end != 1.0:
        found.append("the learning rate stays constant after its warm-up; the recipe lets it fall (verl knows constant and cosine)")
    if recipe.update.minibatches > 1:
        found.append("verl may deal the replies to one prompt out over minibatches; rewardlab keeps them together")
    if recipe.rollout and filter_of(recipe.rollout):
        found.append("verl samples further prompts until a step is full; rewardlab tries a set number of times")
    return found
