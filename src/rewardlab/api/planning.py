"""A training plan without training: computation and requirements."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rewardlab.api.arguments import check_settings, named_model
from rewardlab.api.checking import check_engine
from rewardlab.api.dry_run import checkpoint_in, dtype_below, planned_dtype, policy_of_dry_run
from rewardlab.api.first_rows import check_episodes, gold
from rewardlab.api.idle import tell_idle
from rewardlab.api.inputs import (
    configured,
    in_environment,
    recipe_of,
    require_head,
    require_learning,
    require_weights,
    task_of,
    trainable,
)
from rewardlab.api.judges import with_judges
from rewardlab.api.machine import disk_bytes, disk_free
from rewardlab.api.measuring import measured
from rewardlab.api.memory import Layout, Work, bytes_of, first_change, recomputed, rows_sampled, sums
from rewardlab.api.order import in_order
from rewardlab.api.pair_labels import check_rows
from rewardlab.api.planned_episodes import Episode, episode_of
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.api.stages import check_stages
from rewardlab.core import Group, Recipe, Score, Task, Trajectory
from rewardlab.engine.distributed import world_size
from rewardlab.engine.rates import told
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import find, is_hub_name, parted
from rewardlab.models.load import Policy
from rewardlab.models.planned import has_tokenizer, planned, weights_in
from rewardlab.policies.text import TextPolicy
from rewardlab.rewards.returned import is_ours
from rewardlab.rewards.reward import Reward
from rewardlab.runs.config import RunConfig
from rewardlab.runs.folder import check_new_folder
from rewardlab.runs.track import trackers
from rewardlab.settings import sampling
from rewardlab.settings.hyperparameters import positional
from rewardlab.util.device import device_of, memory_of

PROMPTS = 50
"""Prompts whose mean length is taken for the mean of all."""
JUDGED = 8
"""Problems that the rewards are tried on."""
RANK = 32
"""Of the adapters that are planned with where none are asked for."""


@in_order
def plan(
    recipe: Recipe | str, model: str | Path | Policy | None = None, task: Task | Path | str | None = None, *,
    config: RunConfig | None = None, settings: Mapping[str, Any] | None = None, reward: Any = None, devices: int | None = None,
    memory: str | None = None, **changes: Any,
) -> dict[str, Any]:  # fmt: skip
    """The formula, the tokens and bytes of memory that a step of `train` would need, and the lengths of the prompts.

    reward: as of `train`.  devices: processes that train together, each with a device (default: those that do).  memory: of a
    device, such as 80GB (default: this one's); then `dtype="auto"` is bfloat16, as on GPUs.  A model's config.json is enough.

    memory: bytes on each device by what they are for, for the run as asked and for other ways to keep its model (`api/memory.py`).
    memory_bytes: the most at a time.  fits; change: what to change first where it does not.
    columns: of the data.  batch_columns: what the recipe computes beside them, such as the reference's log-probabilities.
    no_verdict: rewards that judge none of the first problems when the reply is the gold answer, and what they say is missing.
    replies_per_episode, opening_tokens: where an environment answers; of a game none are known.  not_counted: in the tokens.
    disk_bytes: the least that its models would take on disk, second ones as large as the policy; disk_free_bytes: what is free.
    Raises RewardlabError for what would end such a run, such as prompts too long.
    """
    check_settings(recipe, settings, changes)
    asked, model = recipe, named_model(model)
    recipe, config = with_judges(recipe_of(recipe, settings, reward)), configured(config, model, task, changes)
    _check_asked(recipe, config)
    check_stages(recipe, config, asked)
    task = trainable(task_of(task, config))
    check_rows(recipe, task)
    tell_idle(recipe, task, config)
    recipe = measured(in_environment(recipe, task), task)
    policy = _policy(model, config, task, memory)
    require_head(recipe, policy)
    check_episodes(recipe, task, policy, config)
    task, prompts = fit_prompts(task, policy, config, recipe)
    rows, episode = recipe.update.problems * recipe.rows_per_problem, episode_of(recipe, task, policy)
    tokens = int(rows * episode.row(_mean_prompt(policy, task), config.max_new or task.max_new, policy))
    needs = _memory(recipe, policy, task, config, prompts, tokens, devices or world_size(), memory, episode)
    return {
        "formula": str(recipe), "learning_rates": told(recipe, policy, {}), "columns": list(task.columns),
        "batch_columns": list(recipe.needs), "tokens_per_step": tokens, "rows_per_step": rows, **episode.told(), **needs,
        "parameters": sum(p.numel() for p in policy.parameters()), "prompts": prompts,
        "no_verdict": _without_verdict(recipe, task), **_missing(config, task, model), **_disk(recipe, policy, config),
    }  # fmt: skip


def _check_asked(recipe: Recipe, config: RunConfig) -> None:
    """Raise RewardlabError, as `train` does, for a recipe that trains nothing, and for where the run would write and send."""
    trackers(config.track)
    check_new_folder(config.out)
    require_learning(recipe)
    check_engine(recipe, config)


def _policy(model: str | Policy | None, config: RunConfig, task: Task, memory: str | None) -> Policy:
    """The policy to plan with, which could be trained."""
    require_weights(config.model or model)
    return policy_of_dry_run(model, config, task, memory)


def _memory(
    recipe: Recipe, policy: Policy, task: Task, config: RunConfig, prompts: Mapping[str, Any], tokens: int, devices: int,
    memory: str | None, episode: Episode,
) -> dict[str, Any]:  # fmt: skip
    """The memory of a device for the run as asked, and for other ways to keep its model; whether it fits, and what to change."""
    if config.shard and devices < 2:
        raise RewardlabError("--shard divides the weights among several devices: say among how many (--devices 8)")
    available = bytes_of(memory) if memory else memory_of(device_of(config.device))
    if config.sampler and devices > 1:
        raise RewardlabError(
            "the sampler vllm is for a single process: plan for one device, or train through TRL with its own vLLM"
        )
    vllm = _vllm_bytes(policy, config, available, bool(memory))
    most = getattr(policy, "context", 0) or tokens
    work = replace(_work(recipe, task, config, prompts, tokens, devices, available, episode, most), vllm=vllm)
    layouts = list(_layouts(policy, config, task, devices, planned_dtype(config, memory)))
    found = {layout.name: sums(recipe, layout, work) for layout in layouts}
    total = found[layouts[0].name]["total"]
    change = first_change(recipe, layouts, work)
    return {
        "devices": devices, "device_bytes": available, "memory_bytes": total, "memory": found, "fits": not change,
        "change": change, "micro_tokens": work.micro_tokens(policy), **_sampled_by(layouts[0], work, found[layouts[0].name]),
        "format": str(getattr(policy, "dtype", "float32")).removeprefix("torch."),
    }  # fmt: skip


def _work(
    recipe: Recipe, task: Task, config: RunConfig, prompts: Mapping[str, Any], tokens: int, devices: int, available: int,
    episode: Episode, context: int,
) -> Work:  # fmt: skip
    split = [prompts[side] for side in ("train", "test") if side in prompts]
    prompt, reply = max((x.get("longest_kept", x["longest"]) for x in split), default=0), config.max_new or task.max_new
    # the last reply of an episode is sampled after all that was said before
    prompt = min(prompt + episode.opening + (episode.turns - 1) * reply, max(prompt, context - reply))
    across = recipe.rollout is not None and recipe.rollout.across_problems
    problems = -(-recipe.update.problems // (1 if across else devices))
    # held-out problems are not divided among devices
    rows = max(problems * recipe.rows_per_problem, min(config.eval_problems, len(task.test)))
    groups = recipe.objective is not None and "group" in recipe.objective.units
    least = (prompt + reply) * (recipe.rows_per_problem if groups else 1)
    return Work(rows, prompt, reply, -(-tokens // devices), least, available, config.micro_tokens)


def _vllm_bytes(policy: Policy, config: RunConfig, available: int, planned_for: bool) -> int:
    """What vLLM in this process takes of a device: a share of a GPU's memory; on a CPU its weights, and what its cache is given."""
    asked = sampling.read(config.sampler) if config.sampler else None
    if asked is None or asked.url:
        return 0
    if device_of(config.device).type == "cuda" or (planned_for and config.device != "cpu"):
        return int(asked.settings.memory * available)
    size = torch.empty(0, dtype=policy.dtype).element_size()
    return size * sum(p.numel() for p in policy.parameters()) + int(asked.settings.cache * 2**30)


def _sampled_by(layout: Layout, work: Work, found: Mapping[str, int]) -> dict[str, Any]:
    """How many rows the policy samples together; or that vLLM, which is to sample, is not installed."""
    if work.vllm:
        missing = importlib.util.find_spec("vllm") is None
        return {"sampler": "vLLM is not installed here: pip install 'rewardlab[vllm]'"} if missing else {}
    return {"sampled_at_a_time": rows_sampled(layout, work, found)} if "sampling" in found else {}


def _layouts(policy: Policy, config: RunConfig, task: Task, devices: int, dtype: torch.dtype) -> Iterator[Layout]:
    """The run as asked; of a checkpoint, also its other forms."""
    name = checkpoint_in(None, config, task)
    prefix, place = parted(name or "")
    rank, below = config.lora_rank or RANK, dtype_below(config, dtype)
    divided = {f"divided by {devices}": (f"--model hf:{place} --shard", lambda: planned(f"hf:{place}", "cpu", dtype), devices)}
    kinds = (divided if devices > 1 else {}) | {
        "whole": ("", lambda: planned(prefix.replace("nf4:", "hf:") + place, "cpu", dtype), 1),
        f"LoRA {rank}": (f"--lora-rank {rank}", lambda: planned(prefix.replace("nf4:", "hf:") + place, "cpu", below, rank), 1),
        f"nf4, LoRA {rank}": (f"--model nf4:{place} --lora-rank {rank}", lambda: planned(f"nf4:{place}", "cpu", below, rank), 1),
    }
    asked = _asked(policy, config, rank, devices)
    first = Layout(asked, "", policy, devices if config.shard else 1)
    yield first
    if (again := recomputed(first)) is not None:
        yield again
    for kind, (flags, made, parts) in kinds.items():
        if kind == asked or name is None or not isinstance(policy, TextPolicy):
            continue
        # vLLM takes weights over, which are not to be had from 4 bits
        if config.sampler and kind.startswith("nf4"):
            continue
        # a family that cannot have adapters has no such form
        with suppress(RewardlabError):
            form = Layout(kind, flags, made(), parts)
            form.policy.recomputes = config.gradient_checkpointing
            yield form


def _asked(policy: Policy, config: RunConfig, rank: int, devices: int) -> str:
    if config.shard:
        return f"divided by {devices}"
    if getattr(policy, "packed", False):
        return f"nf4, LoRA {rank}"
    return f"LoRA {rank}" if config.lora_rank else "whole"


def _missing(config: RunConfig, task: Task, model: str | Policy | None) -> dict[str, str]:
    """What the folder of the model lacks, so that it can be planned with and not trained."""
    name = checkpoint_in(model, config, task)
    # what the hub has is downloaded when training begins
    folder = find(name, weights=False).folder if name and not is_hub_name(name) else None
    lacks = [what for what, there in (("weights", weights_in), ("a tokenizer", has_tokenizer)) if folder and not there(folder)]
    return {"lacks": f"{folder} lacks {' and '.join(lacks)}: it can be planned with, not trained"} if lacks else {}


def _disk(recipe: Recipe, policy: Policy, config: RunConfig) -> dict[str, int]:
    models = dict.fromkeys((learner.name for learner in recipe.also), policy)
    return {"disk_bytes": disk_bytes(recipe, policy, models, config), "disk_free_bytes": disk_free(Path(config.out or "runs"))}


def _mean_prompt(policy: Policy, task: Task) -> float:
    """The mean length in tokens of the first training prompts."""
    problems = [task.train[i] for i in range(PROMPTS)]
    read = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return sum(len(t) for t in read) / len(read)


def _without_verdict(recipe: Recipe, task: Task) -> dict[str, str]:
    """Rewards of single replies by name, and why they judged none: mostly, the data lacks a column that they read.

    Rewards of whole groups, of models and of the user's own files are not tried: they may take long, or need a run. Nor are those
    of replies to other questions than the rows', and those that refuse a reply which was not sampled.
    """
    if not isinstance(recipe.reward, Reward) or recipe.rewords:
        return {}
    groups = [[gold(task.train[i])] for i in range(JUDGED)]
    tried = [part for part in recipe.reward.walk() if isinstance(part, Reward) and _tried(part)]
    found = {part.name: _told(part, groups) for part in tried}
    return {name: row[0].why for name, row in found.items() if row and all(score.missing for score in row)}


def _told(reward: Reward, groups: list[Group]) -> list[Score]:
    try:
        return [score for (score,) in reward(groups)]
    except RewardlabError:
        return []


def _tried(part: Reward) -> bool:
    single = getattr(part.options, "over", None) == "trajectory" and not part.of
    # a number in a formula is a reward without a function
    function = getattr(part, "function", None)
    return single and function is not None and is_ours(function) and len(positional(function)) == 1
