"""The policy of a dry run, which trains nothing: no small policy either, which takes minutes to make."""

from __future__ import annotations

from rewardlab.api.inputs import policy_of
from rewardlab.api.untaught import tell_untaught
from rewardlab.core import Task
from rewardlab.models.load import Policy
from rewardlab.models.planned import unmade
from rewardlab.runs.config import RunConfig
from rewardlab.util.progress import console


def policy_of_dry_run(model: str | Policy | None, config: RunConfig, task: Task) -> Policy:
    """As `policy_of`; where that would train a small policy first, one of its shape and tokenizer, with random weights."""
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
