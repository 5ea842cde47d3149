"""Cached baseline runs, shared by claims with the same baseline and world.

    CACHE/runs/KEY/s100/     the run folder of a seed, with its last weights, so that a new measure needs no new run

KEY (`keys.key_of`) is a hash of the recipe, the configuration, the versions of the libraries, and all code that the run reaches. As
a further guard, two steps are computed anew before kept runs are used: where they differ, as on a machine that computes otherwise,
the kept runs are removed.
"""

from __future__ import annotations

import functools
import importlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from rewardlab import api, registry
from rewardlab.api.measuring import keep_weights, remeasure
from rewardlab.checks.runs import BEFORE, BESIDES, Done, Job, finished, kind_of, recipe_of, run
from rewardlab.core import Part, Recipe
from rewardlab.evals.cached_start import cached_start
from rewardlab.registry.code import Start, hash_of, room_of
from rewardlab.runs.config import RunConfig
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.files import cache, new_folder, write_json

# ---- What decides the numbers of a run, as hashes: equal hashes, equal numbers ---------------------------------------

STARTS, UNFINISHED = "starts", "unfinished"
"""Folders of the cache for what runs measure before they train, and for outcomes that are in no record yet."""
ALWAYS = (
    "engine/loop.py", "engine/step.py", "models/load.py", "models/learners.py", "models/embedded.py", "api/training.py",
    "checks/runs.py",
)  # fmt: skip
"""What every run reaches by name and not by import."""
NOT_OF_NUMBERS = ("report", "commands", "checks", "comparisons", "leagues")
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


@functools.cache
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


# ----------------------------------------------------------------------------------------------------------------------
#
# What runs measure before they train is kept: both sides of a claim begin with the same policy, and so do the claims of a world.
#
#     CACHE/starts/KEY/s100.json     the numbers of a seed before its first step
#     DIR/starts/KEY-s0.json         the same, among the runs of the comparison in DIR
#
# In a run of 40 updates, the measurement before them takes a sixth of the time.


def with_known_start(job: Job) -> Job:
    """The job, whose numbers before training are those of an earlier run that began alike, if there was one."""
    return with_start_in(job, _file(job)) if keepable(job) else job


def with_shared_start(job: Job, folder: Path) -> Job:
    """The job, whose numbers before training are those of the first run of the comparison in `folder` that begins alike."""
    return with_start_in(job, folder.resolve() / STARTS / f"{start_within(job)}-s{job.config.seed}.json")


def with_start_in(job: Job, file: Path) -> Job:
    """The job, whose numbers before training are read from this file, if it is there, and else kept in it."""
    recipe = recipe_of(job)
    if recipe.measure is None or not job.config.eval_problems or kind_of(recipe) != "train":
        return job
    # what is measured beside is within the measure already
    return replace(job, by=cached_start(inner=recipe.measure, file=str(file)).to_json(), beside=False)


def _file(job: Job) -> Path:
    return cache() / STARTS / start_of(job) / f"s{job.config.seed}.json"


CANARY = 2
"""Steps that are run anew to see whether this machine still computes what was kept."""
DAYS = 30
"""For how long runs are kept that no claim asks for: a seed takes about 11 MB."""
NUMBERS = "numbers-{}.json"


def folder_of(job: Job) -> Path:
    return cache() / "runs" / key_of(job) / f"s{job.config.seed}"


def kept(job: Job) -> Done | None:
    """The outcome of a run that is kept, measured again where it was measured by something else; None if there is none."""
    folder = folder_of(job)
    if not (folder / "summary.json").exists():
        return None
    known = folder / NUMBERS.format(measured_as(job))
    done = finished(folder)
    assert done is not None
    if known.exists():
        return replace(done, numbers=json.loads(known.read_text("utf-8")))
    measure = recipe_of(job).measure
    if measure is None:
        return done
    before, after = (
        {k: v for k, v in side.items() if k not in BESIDES} for side in remeasure(folder, measure, job.config.eval_problems)
    )
    # what training logged stays; what was measured before or after it is of another measure
    logged = {k: v for k, v in done.numbers.items() if k.startswith(("train.", "auc.")) or k in ("tokens", "steps", "updates")}
    numbers = {**after, **{BEFORE + k: v for k, v in before.items()}, **logged}
    write_json(known, numbers)
    return replace(done, numbers=numbers, curve=[])


def run_kept(job: Job) -> Done:
    """The outcome of a run: of the one that is kept, else of a new one, which is kept."""
    if (known := kept(job)) is not None:
        return known
    target = folder_of(job)
    # its last weights alone: a run that fails is not resumed
    once = replace(job, keep=True, config=job.config.but(checkpoint_every=0))
    done, folder = run(with_known_start(once)), Path(job.folder)
    keep_weights(folder)
    write_json(folder / NUMBERS.format(measured_as(job)), done.numbers)
    target.parent.mkdir(parents=True, exist_ok=True)
    # two processes may end the same run at the same time: the first one's stays
    if not target.exists():
        with new_folder(target) as new:
            shutil.copytree(folder, new, dirs_exist_ok=True)
    shutil.rmtree(folder)
    return done


def first_steps(job: Job, folder: Path) -> list[dict[str, Any]]:
    """What the first steps of a run log, but for the seconds. They are run in `folder`, which is removed."""
    # the steps are few, and a schedule over them is another than the run's; so they are compared with steps of their own
    config = job.config.but(steps=CANARY, budget=None, checkpoint_every=0, out=folder)
    recipe = recipe_of(job)
    try:
        api.train(recipe if config.eval_problems else recipe.but(measure=None), config=config)
        return [{k: v for k, v in line.items() if not k.startswith("seconds/")} for line in read_metrics(folder)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _say_the_same(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> bool:
    """Whether all that was logged is so again; what is logged since then, beside it, changes no run."""
    return len(before) == len(after) and all(old.items() <= new.items() for old, new in zip(before, after, strict=True))


def still_so(job: Job) -> bool:
    """Whether this machine computes what the kept runs like this one are of. Where it does not, they are removed.

    The first steps of a run are computed anew and compared with what they were.
    """
    known, folder = folder_of(job).parent / "canary.json", Path(job.folder) / "canary"
    forget(DAYS)
    unmeasured = replace(job, by=None, beside=False, config=job.config.but(eval_problems=0))
    lines = first_steps(unmeasured, folder)
    same = not known.exists() or _say_the_same(json.loads(known.read_text("utf-8")), lines)
    if not same:
        shutil.rmtree(known.parent, ignore_errors=True)
    known.parent.mkdir(parents=True, exist_ok=True)
    write_json(known, lines)
    return same


def forget(days: float) -> None:
    """Remove what no claim asked for in so many days: runs of code that has changed since, mostly; and as old numbers of runs that
    began, or were not recorded.
    """
    since = time.time() - days * 86_400
    # a canary is written whenever a claim asks for the runs beside it
    for canary in (cache() / "runs").glob("*/canary.json"):
        if canary.stat().st_mtime < since:
            shutil.rmtree(canary.parent, ignore_errors=True)
    for folder in (STARTS, UNFINISHED):
        for file in (cache() / folder).glob("*/*.json"):
            if file.stat().st_mtime < since:
                file.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------------------------------
#
# Outcomes of a claim that is not decided yet: a reproduction that was stopped resumes after the runs that it had finished.
#
#     CACHE/unfinished/KEY/s100.json     the outcome of a seed, as plain numbers
#
# KEY is a hash of all that decides the numbers of the run. When a result is recorded its outcomes are removed: whoever reproduces
# the claim again runs the method again. Those of development seeds stay for as long as kept runs do.


def run_once(job: Job) -> Done:
    """The outcome of a run: the one known from a reproduction that was stopped, else that of a new run, which is then known."""
    if not keepable(job):
        return run(job)
    file = _unfinished_file(job)
    if file.exists():
        known = json.loads(file.read_text("utf-8"))
        # JSON has no tuples
        return Done(**known | {"curve": [tuple(point) for point in known["curve"]]})
    done = run(with_known_start(job))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, asdict(done))
    return done


def recorded(job: Job) -> None:
    """Forget the outcome of this run, whose numbers are in a record now."""
    if keepable(job):
        _unfinished_file(job).unlink(missing_ok=True)


def _unfinished_file(job: Job) -> Path:
    return cache() / UNFINISHED / outcome_of(job) / f"s{job.config.seed}.json"
