"""How many runs go side by side: small policies as many as there are cores; real models one per GPU, or as many as memory holds."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import torch

from rewardlab.api.dry_run import checkpoint_in, planned_dtype, policy_of_dry_run
from rewardlab.api.inputs import task_of
from rewardlab.api.memory import LEAST_TOKENS, Layout, Work, sums
from rewardlab.api.named_scorers import scorers_of_all_kinds
from rewardlab.checks.workers import Crew, cores
from rewardlab.comparisons.season import FIRST, Season
from rewardlab.core import Recipe, Task
from rewardlab.errors import RewardlabError
from rewardlab.models.learners import named_start
from rewardlab.models.load import Policy
from rewardlab.models.planned import is_checkpoint, planned
from rewardlab.runs.config import RunConfig
from rewardlab.util.device import device_of, free_memory

SMALL = 2**28
"""Bytes below which a run is that of a small policy, of which a GPU holds many."""
OVERHEAD = 2**30
"""What Python, PyTorch and the tables of a process take beside its models."""
KINDS = ("*.safetensors", "*.bin")
"""Files of weights."""
ROOM = 0.8
"""Of the free memory, what runs are planned to take."""


def crew(jobs: int | None, config: RunConfig, recipes: Sequence[Recipe], task: Task, runs: int | None = None) -> Crew:
    """The processes for runs of these recipes.  jobs: as many as the user says; None: as many as suit the model and the machine.

    runs: how many there are at most at a time, where that is known. A run of a real model has as many threads as its part of the
    cores. On GPUs each has one to itself, unless more jobs are asked for than there are GPUs, or a device is named by its number.
    """
    limit = runs or sys.maxsize
    needed = bytes_of_runs(recipes, config, task)
    if needed < SMALL:
        return Crew(min(jobs or cores(), limit))
    gpus: tuple[str, ...] = ()
    if device_of(config.device).type == "cuda":
        gpus = visible_gpus() if config.device in ("auto", "cuda") else ()
        size = min(jobs or max(1, len(gpus)), limit)
        together = -(-size // max(1, len(gpus)))
    else:
        fit = int(ROOM * free_memory(torch.device("cpu"))) // (needed + OVERHEAD)
        size = together = min(jobs or max(1, min(cores(), fit)), limit)
    return Crew(size, max(1, cores() // size), gpus, together)


def with_crew(season: Season) -> Season:
    """A league on a user's own problems with the processes that suit their model."""
    (world,) = season.league.worlds
    config = season.job(season.league.member(season.league.baseline), world, FIRST).config
    recipes = [season.recipe(member, world) for member in season.league.members_of(world)]
    jobs = season.processes.size if isinstance(season.processes, Crew) else season.processes
    return replace(season, processes=crew(jobs, config, recipes, task_of(None, config)))


def bytes_of_runs(recipes: Sequence[Recipe], config: RunConfig, task: Task) -> int:
    """The memory that the largest of these runs needs for its models, in passes as small as they can be, as far as it can be told;
    0 for small policies and served models."""
    policy = None if checkpoint_in(None, config, task) is None else policy_of_dry_run(None, config, task)
    return max((_bytes_of_run(recipe, policy, config, task) for recipe in recipes), default=0)


def _bytes_of_run(recipe: Recipe, policy: Policy | None, config: RunConfig, task: Task) -> int:
    dtype = planned_dtype(config)
    named = [*scorers_of_all_kinds(recipe), *(learner.init for learner in recipe.also)]
    read = sum(_weights(name, dtype) for name in dict.fromkeys(named))
    if policy is None:
        return read
    reply = config.max_new or task.max_new
    work = Work(1, LEAST_TOKENS, reply, LEAST_TOKENS, LEAST_TOKENS, torch.iinfo(torch.int64).max, LEAST_TOKENS)
    try:
        return sums(recipe, Layout("", "", policy), work)["total"] + read
    except Exception:
        # what this policy cannot be made to do is told by the run, which names the method: here its own size has to do
        return sums(Recipe(), Layout("", "", policy), work)["total"] + read


def _weights(start: str, dtype: torch.dtype) -> int:
    """The bytes of a model that scores, prm:NAME or model:NAME, or that a learner starts from, as far as they are known."""
    prefix, _, rest = start.partition(":")
    name = rest.partition("?")[0] if prefix in ("prm", "model") else named_start(start) or ""
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        # a run keeps its model in a folder of its own
        return sum(file.stat().st_size for of in ("", "model/") for kind in KINDS for file in folder.glob(of + kind))
    if not name or not is_checkpoint(name):
        return 0
    # one of a kind that is no policy is told of, if at all, where it is loaded
    with suppress(RewardlabError):
        return sum(p.numel() * p.element_size() for p in planned(name, "cpu", dtype).parameters())
    return 0


def visible_gpus() -> tuple[str, ...]:
    """The GPUs that this process sees, as CUDA_VISIBLE_DEVICES names them."""
    names = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name.strip()]
    there = torch.cuda.device_count()
    # CUDA itself ignores what follows the first name that is none
    return tuple(names[:there] or map(str, range(there)))
