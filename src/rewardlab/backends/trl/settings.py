"""Translate a recipe to a GRPOConfig of TRL."""

from __future__ import annotations

from typing import Any

import torch
from trl import GRPOConfig

from rewardlab.core import Recipe, Run
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import RunConfig

DECIDED = frozenset((
    *("num_generations", "num_iterations", "steps_per_generation", "generation_batch_size", "max_steps", "num_train_epochs"),
    *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_completion_length", "generation_kwargs"),
    *("beta", "loss_type", "epsilon", "epsilon_high", "delta", "scale_rewards", "reward_weights", "importance_sampling_level"),
    *("multi_objective_aggregation", "top_entropy_quantile", "mask_truncated_completions", "off_policy_mask_threshold"),
    *("entropy_coef", "use_adaptive_entropy", "sync_ref_model", "use_bias_correction_kl", "shuffle_dataset", "seed"),
    *("learning_rate", "adam_beta1", "adam_beta2", "weight_decay", "max_grad_norm", "lr_scheduler_type", "lr_scheduler_kwargs"),
    *("warmup_steps", "warmup_ratio", "logging_strategy", "logging_steps"),
))  # fmt: skip
"""Fields of GRPOConfig that the recipe decides (another value would have no effect, or change the method), and those that make TRL
log once a step."""


def fields_of(config: RunConfig) -> dict[str, Any]:
    """The fields of GRPOConfig that a configuration sets: its engine_options, and those for its device and number format."""
    fields = dict(config.engine_options)
    if "chat_template_kwargs" in fields:
        # prompts are rendered here, and TRL is given their ids
        raise RewardlabError("chat_template_kwargs are a setting of the run: --chat-template-kwargs, without --trl")
    if config.device == "cpu":
        fields["use_cpu"] = True
    if config.dtype != "auto":
        fields["bf16"] = config.dtype == "bfloat16"
    return fields


def config_of(recipe: Recipe, run: Run, **fields: Any) -> GRPOConfig:
    """A GRPOConfig for `recipe`. fields: any field of GRPOConfig that the recipe does not decide."""
    if decided := sorted(DECIDED & fields.keys()):
        raise RewardlabError(f"the recipe decides {', '.join(decided)}; change it there (rewardlab show), not in GRPOConfig")
    update, n = recipe.update, recipe.rows_per_problem
    on_cpu = bool(fields.get("use_cpu")) or not torch.cuda.is_available()
    ours = {
        "max_steps": run.steps * update.epochs * update.minibatches, "num_iterations": update.epochs,
        # without one, the trainer takes what suits its model
        **({} if update.lr is None else {"learning_rate": update.lr}),
        "adam_beta1": update.beta1, "adam_beta2": update.beta2, "weight_decay": update.weight_decay,
        "max_grad_norm": update.clip_norm,
        "max_completion_length": run.max_new, "seed": run.seed, "beta": 0.0, "shuffle_dataset": False,
        "disable_dropout": True, "save_strategy": "no", "report_to": "none", "logging_steps": update.epochs * update.minibatches,
        "remove_unused_columns": False, "ddp_find_unused_parameters": False, "bf16": not on_cpu, "use_cpu": on_cpu,
        **generation_of(recipe),
    }  # fmt: skip
    rows = fields.pop("per_device_train_batch_size", None)
    # TRL refuses a single reply per problem, since its own advantages would be 0; the recipe's credit needs no group
    config = GRPOConfig(**ours | fields | {"num_generations": 2, "per_device_train_batch_size": 2})
    config.num_generations, config.generation_batch_size = n, update.problems * n
    _accumulate(config, update.minibatches, rows, "gradient_accumulation_steps" in fields)
    return config


def generation_of(recipe: Recipe) -> dict[str, Any]:
    """How replies are sampled. TRL's `temperature` stays 1: the policy itself divides the logits (`util/tempered.py`)."""
    sampling = recipe.sampling_settings
    kwargs = {"temperature": float(sampling.get("temperature", 1.0))}
    return {
        "temperature": 1.0, "top_p": sampling.get("top_p", 1.0), "top_k": sampling.get("top_k", 0),
        "generation_kwargs": kwargs if kwargs["temperature"] not in (0.0, 1.0) else None,
    }  # fmt: skip


def _accumulate(config: GRPOConfig, minibatches: int, rows: int | None, by_accumulation: bool) -> None:
    """Cut the rows of an optimiser step into equal micro-batches for every process."""
    share, remainder = divmod(config.generation_batch_size, config.world_size * minibatches)
    if by_accumulation:
        rows = share // config.gradient_accumulation_steps
    elif rows is None:
        rows = next((k for k in range(min(8, share), 0, -1) if share % k == 0), 0)
    if remainder or not rows or share % rows:
        raise RewardlabError(
            f"{config.generation_batch_size} rows a step cannot be divided evenly among {config.world_size} process(es), "
            f"{minibatches} minibatch(es) and micro-batches of {rows or 'so few'} rows; change problems, n, minibatches or "
            "per_device_train_batch_size"
        )
    config.per_device_train_batch_size = rows
    config.gradient_accumulation_steps = share // rows
    config.steps_per_generation = minibatches * config.gradient_accumulation_steps
