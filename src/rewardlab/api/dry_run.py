"""The policy by which prompts are counted and memory is planned, before anything is trained.

Of a checkpoint it has the shapes and the tokenizer; a dry run makes no small policy either, which takes minutes.
"""

from __future__ import annotations

import torch

from rewardlab.api.inputs import in_template, policy_of
from rewardlab.api.untaught import tell_untaught
from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import PACKAGED, find, is_hub_name, is_packaged, parted
from rewardlab.models.load import Policy
from rewardlab.models.planned import is_checkpoint, planned, unmade, weights_in
from rewardlab.policies.text import TextPolicy
from rewardlab.runs.config import RunConfig
from rewardlab.util.device import device_of, dtype_of
from rewardlab.util.progress import console


def policy_of_dry_run(model: str | Policy | None, config: RunConfig, task: Task, memory: str | None = None) -> Policy:
    """As `policy_of`, of a checkpoint without its weights; where that would train a small policy first, one of its shape and
    tokenizer, with random weights.  memory: of the device that is planned for, where that is another one.
    """
    if (checkpoint := checkpoint_in(model, config, task)) is not None:
        return _unloaded(checkpoint, config, planned_dtype(config, memory))
    name = config.model or task.model
    named = model is None or isinstance(model, str)
    policy = unmade(name, task) if named and not config.shard else None
    if policy is None:
        return policy_of(model, config, task)
    tell_untaught(name, task)
    console.print(
        "the small policy is made at the first run, in minutes, and kept: until then one with random weights stands for it here",
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
    return policy_of(policy.adapt(config.lora_rank) if config.lora_rank else policy, config, task)


def policy_before_runs(config: RunConfig, task: Task, dry: bool = False) -> Policy:
    """The policy by which it is checked what all of several runs need: a small one is made, and the files of a checkpoint are
    fetched, once and not by every run; its weights are read by the runs alone.  dry: nothing is made or fetched.

    Raises RewardlabError for a checkpoint that is not there, or lacks weights.
    """
    if (checkpoint := checkpoint_in(None, config, task)) is None:
        return policy_of_dry_run(None, config, task) if dry else policy_of(None, config, task)
    # one that is still to be taught its task (smollm2:TASK) takes minutes
    made_later = is_hub_name(checkpoint) or (is_packaged(checkpoint) and parted(checkpoint)[1] not in PACKAGED)
    if not (dry and made_later):
        found = find(checkpoint)
        for folder in filter(None, (found.folder, found.adapter)):
            if not weights_in(folder):
                raise RewardlabError(f"{folder} lacks weights: put its *.safetensors there, or name another --model")
    return _unloaded(checkpoint, config, planned_dtype(config))


def checkpoint_in(model: str | Policy | None, config: RunConfig, task: Task) -> str | None:
    """The name of the model where that is a checkpoint; None for the small policies, and for objects."""
    name = config.model or task.model
    return name if (model is None or isinstance(model, str)) and is_checkpoint(name) else None


def planned_dtype(config: RunConfig, memory: str | None = None) -> torch.dtype:
    """The number format in which a policy computes; with another device's memory that of GPUs."""
    if memory and config.dtype == "auto":
        return torch.bfloat16
    return dtype_of(config.dtype, device_of(config.device))


def dtype_below(config: RunConfig, dtype: torch.dtype) -> torch.dtype:
    """The format that counts for a model with adapters: TRL is given what is below them in float32, whatever computes."""
    return torch.float32 if config.engine == "trl" else dtype


def _unloaded(name: str, config: RunConfig, dtype: torch.dtype) -> Policy:
    """The policy of a checkpoint, without its weights."""
    prefix = "hf:" if config.shard and not parted(name)[0] else ""
    policy = planned(f"{prefix}{name}", config.device, dtype_below(config, dtype) if config.lora_rank else dtype, config.lora_rank)
    if config.gradient_checkpointing and isinstance(policy, TextPolicy):
        policy.recomputes = True
    return in_template(policy, config)
