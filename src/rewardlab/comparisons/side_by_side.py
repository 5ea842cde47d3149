"""How many runs go side by side: small policies as many as there are cores; real models one per GPU, or as many as memory holds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from rewardlab.api.dry_run import checkpoint_in, planned_dtype, policy_of_dry_run
from rewardlab.api.inputs import in_environment, scorers_of_all_kinds, task_of
from rewardlab.api.memory import LEAST_TOKENS, Layout, Work, sums
from rewardlab.checks.workers import Crew, cores
from rewardlab.comparisons.season import FIRST, Season
from rewardlab.core import Recipe, Task
from rewardlab.errors import RewardlabError
from rewardlab.models.planned import is_checkpoint, planned
from rewardlab.runs.config import RunConfig
from rewardlab.util.device import device_of, free_memory

SMALL = 2**28
"""Bytes below which a run is that of a small policy, of which a GPU holds many."""
OVERHEAD = 2**30
"""What Python, PyTorch and the tables of a process take beside its models."""
ROOM = 0.8
"""Of the free memory, what runs are planned to take."""


def crew(jobs: int | None, config: RunConfig, recipes: Sequence[Recipe], task: Task) -> Crew:
    """The processes for runs of these recipes.  jobs: as many as the user says; None: as many as suit the model and the machine.

    A run of a real model has as many threads as its share of the cores. On GPUs each has one to itself, unless there are more runs
    than GPUs, or a device is named by its number.
    """
    needed = max((bytes_of_run(recipe, config, task) for recipe in recipes), default=0)
    if needed < SMALL:
        return Crew(jobs or cores())
    if device_of(config.device).type == "cuda":
        gpus = _gpus() if config.device in ("auto", "cuda") else ()
        size = jobs or max(1, len(gpus))
        share = -(-size // max(1, len(gpus)))
    else:
        gpus, fit = (), int(ROOM * free_memory(torch.device("cpu"))) // (needed + OVERHEAD)
        size = share = jobs or max(1, min(cores(), fit))
    return Crew(size, max(1, cores() // size), gpus, share)


def with_crew(season: Season) -> Season:
    """A league on a user's own problems with the processes that suit their model."""
    (world,) = season.league.worlds
    config = season.job(season.league.member(season.league.baseline), world, FIRST).config
    task = task_of(None, config)
    recipes = [in_environment(season.recipe(member, world), task) for member in season.league.members_of(world)]
    jobs = season.processes.size if isinstance(season.processes, Crew) else season.processes
    return replace(season, processes=crew(jobs, config, recipes, task))


def bytes_of_run(recipe: Recipe, config: RunConfig, task: Task) -> int:
    """The least memory that a run's models need, in passes as small as they can be; 0 for small policies and served models."""
    dtype = planned_dtype(config)
    read = sum(_weights(scorer, dtype) for scorer in scorers_of_all_kinds(recipe))
    if checkpoint_in(None, config, task) is None:
        return read
    policy, reply = policy_of_dry_run(None, config, task), config.max_new or task.max_new
    work = Work(1, LEAST_TOKENS, reply, LEAST_TOKENS, LEAST_TOKENS, torch.iinfo(torch.int64).max, LEAST_TOKENS)
    return sums(recipe, Layout("", "", policy), work)["total"] + read


def _weights(scorer: str, dtype: torch.dtype) -> int:
    """The bytes of a model that scores, prm:NAME or model:NAME, as far as they are known."""
    name = scorer.partition(":")[2].partition("?")[0]
    folder = Path(name).expanduser()
    if folder.is_dir():
        # a run keeps its model in a folder of its own
        return sum(file.stat().st_size for file in (*folder.glob("*.safetensors"), *folder.glob("model/*.safetensors")))
    if not is_checkpoint(name):
        return 0
    # one of a kind that is no policy is told of, if at all, where it is loaded
    with suppress(RewardlabError):
        return sum(p.numel() * p.element_size() for p in planned(name, "cpu", dtype).parameters())
    return 0


def _gpus() -> tuple[str, ...]:
    """The GPUs that this process sees, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return tuple(named.split(",")) if named else tuple(map(str, range(torch.cuda.device_count())))
