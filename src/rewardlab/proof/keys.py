"""What decides the numbers of a run, as hashes: equal hashes, equal numbers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from rewardlab import api, registry
from rewardlab.core import Part, Recipe
from rewardlab.registry.code import Start, hash_of, room_of
from rewardlab.runs.config import RunConfig

from .runs import Job, kind_of, recipe_of

STARTS, UNFINISHED = "starts", "unfinished"
"""Folders of the cache for what runs measure before they train, and for outcomes that are in no record yet."""
ALWAYS = ("engine/loop.py", "engine/step.py", "models/load.py", "models/embedded.py", "api/training.py", "proof/runs.py")
"""What every run reaches by name and not by import."""
NOT_OF_NUMBERS = ("report", "commands", "proof")
"""Rooms whose code decides how a run is shown or compared."""
MEASURES = "evals"
"""The room whose code decides how a run is measured: a new measure needs no new run."""
TRAINING = (
    "method", "seed", "steps", "budget", "start", "out", "track", "eval_every", "checkpoint_every", "record_every", "patience",
    "max_missing", "reward_timeout",
)  # fmt: skip
"""Settings of a run that do not touch what it begins with, and the seed."""


def keepable(job: Job) -> bool:
    """Whether the run is one of a policy on a task that has a name, which another process can load again."""
    return kind_of(recipe_of(job)) == "train" and job.config.task.partition(":")[0] in registry.task_files()


def key_of(job: Job) -> str:
    """The hash of all that decides the weights that a run ends with, but for its seed."""
    recipe = recipe_of(replace(job, by=None, beside=False)).but(measure=None)
    config = job.config.but(seed=0, out=None, eval_problems=0)
    document = {k: v for k, v in config.to_json().items() if k not in ("method", "eval_problems", "eval_every", "record_every")}
    settings = recipe.but(name="").to_json(), document, api.versions()
    return hash_of(_starts(config, recipe), settings, _outside(*NOT_OF_NUMBERS, MEASURES))


def measured_as(job: Job) -> str:
    """The hash of what a run is measured by."""
    measure = recipe_of(job).measure
    settings = measure and measure.to_json(), job.config.eval_problems
    return hash_of(_functions(Recipe(measure=measure)), settings, _outside(*NOT_OF_NUMBERS))


def start_of(job: Job) -> str:
    """The hash of all that decides what a run measures before its first step, but for its seed."""
    decides, document = _beginning(job)
    settings = decides.to_json(), document, _machine()
    return hash_of(_starts(job.config, decides), settings, _outside(*NOT_OF_NUMBERS))


def start_within(job: Job) -> str:
    """The same among runs that start on one machine by one version of the code, of tasks and models that need no name."""
    decides, document = _beginning(job)
    return hash_of((), (decides.to_json(), document))


def _beginning(job: Job) -> tuple[Recipe, dict[str, Any]]:
    """What of the recipe, and of the settings but for the seed, decides what a run measures before its first step."""
    recipe = recipe_of(job)
    # a measure may ask a second model, which the recipe says how to begin
    decides = recipe.but(name="") if recipe.also else Recipe(measure=recipe.measure)
    return decides, {k: v for k, v in job.config.to_json().items() if k not in TRAINING}


def outcome_of(job: Job) -> str:
    """The hash of all that decides the outcome of a run, its measurements among them, but for its seed."""
    return hash_of((), (key_of(job), measured_as(job), _machine()))


def _starts(config: RunConfig, recipe: Recipe) -> list[Start]:
    """Where the code of a run of the recipe begins."""
    task = config.task.partition(":")[0]
    always = [(registry.PACKAGE / name, None) for name in ALWAYS]
    return [*always, (registry.task_files()[task], task), *_functions(recipe)]


def _outside(*rooms: str) -> Callable[[Path], bool]:
    """Whether a file is in none of these rooms."""
    return lambda path: room_of(path) not in rooms


def _machine() -> tuple[object, ...]:
    return api.versions(), torch.backends.cpu.get_cpu_capability()


def _functions(recipe: Recipe) -> Iterator[Start]:
    """The functions of the parts of a recipe and of its learners."""
    recipes = (recipe, *(learner.recipe for learner in recipe.also))
    parts = [part for one in recipes for slot in one.parts().values() for part in slot.walk()]
    parts += [learner.problems for learner in recipe.also if isinstance(learner.problems, Part)]
    for part in parts:
        if function := getattr(part, "function", None):
            yield Path(str(importlib.import_module(function.__module__).__file__)), function.__qualname__
