"""Baseline runs that are kept: many claims compare with the same baseline in the same world, and one set of its runs serves all.

    CACHE/runs/KEY/s100/     the run folder of a seed, with its last weights, so that a new measure needs no new run

KEY is a hash of the recipe, the configuration, the versions of the libraries, and all code of the package that the run reaches. As
a further guard, two steps are computed anew before kept runs are used: where they differ, as on a machine that computes otherwise,
the kept runs are removed.
"""

from __future__ import annotations

import importlib
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rewardlab import api, registry
from rewardlab.api.remeasure import keep_weights, remeasure
from rewardlab.core import Part, Recipe
from rewardlab.models.fingerprint import PACKAGE, hash_of, reached
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.files import cache, new_folder, write_json

from .runs import BESIDES, Done, Job, finished, kind_of, recipe_of, run

CANARY = 2
"""Steps that are run anew to see whether this machine still computes what was kept."""
EVERYTHING = ("",)
"""Follow imports into the whole package."""
ALWAYS = ("engine/loop.py", "engine/step.py", "models/load.py", "models/embedded.py", "api/training.py", "proof/runs.py")
"""What every run reaches by name and not by import."""
DAYS = 30
"""For how long runs are kept that no claim asks for: a seed takes about 11 MB."""
NOT_OF_RUNS = ("evals", "report", "commands", "proof")
"""Rooms whose code decides how a run is measured, shown or compared: a new measure or claim needs no new run."""
NUMBERS = "numbers-{}.json"


def key_of(job: Job) -> str:
    """The hash of all that decides the weights that a run ends with, but for its seed."""
    recipe = recipe_of(replace(job, by=None, beside=False)).but(measure=None)
    config = job.config.but(seed=0, out=None, eval_problems=0)
    files = {PACKAGE / name for name in ALWAYS} | {registry.task_files()[config.task.partition(":")[0]]} | set(_modules(recipe))
    code = files | {path for path in reached(files, EVERYTHING) if path.parent.name not in NOT_OF_RUNS}
    document = {k: v for k, v in config.to_json().items() if k not in ("method", "eval_problems", "eval_every", "record_every")}
    return hash_of(code, (recipe.but(name="").to_json(), document, api.versions()))


def measured_as(job: Job) -> str:
    """The hash of what a run is measured by."""
    measure = recipe_of(job).measure
    return hash_of(set(_modules(Recipe(measure=measure))), (measure and measure.to_json(), job.config.eval_problems))


def keepable(job: Job) -> bool:
    """Whether the run is one of a policy on a task that has a name, which another process can load again."""
    return kind_of(recipe_of(job)) == "train" and job.config.task.partition(":")[0] in registry.task_files()


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
    numbers = {**after, **{f"before.{k}": v for k, v in before.items()}, **logged}
    write_json(known, numbers)
    return replace(done, numbers=numbers, curve=[])


def run_kept(job: Job) -> Done:
    """The outcome of a run: of the one that is kept, else of a new one, which is kept."""
    if (known := kept(job)) is not None:
        return known
    target = folder_of(job)
    # its last weights alone: a run that fails is not resumed
    done, folder = run(replace(job, keep=True, config=job.config.but(checkpoint_every=0))), Path(job.folder)
    keep_weights(folder)
    write_json(folder / NUMBERS.format(measured_as(job)), done.numbers)
    target.parent.mkdir(parents=True, exist_ok=True)
    # two processes may end the same run at the same time: the first one's stays
    if not target.exists():
        with new_folder(target) as new:
            shutil.copytree(folder, new, dirs_exist_ok=True)
    shutil.rmtree(folder)
    return done


def still_so(job: Job) -> bool:
    """Whether this machine computes what the kept runs like this one are of. Where it does not, they are removed.

    The first steps of a run are computed anew and compared with what they were.
    """
    known, folder = folder_of(job).parent / "canary.json", Path(job.folder) / "canary"
    forget(DAYS)
    # the steps are few, and a schedule over them is another than the run's; so they are compared with steps of their own
    config = job.config.but(steps=CANARY, budget=None, eval_problems=0, checkpoint_every=0, out=folder)
    api.train(recipe_of(replace(job, by=None, beside=False)).but(measure=None), config=config)
    lines = [{k: v for k, v in line.items() if not k.startswith("seconds/")} for line in read_metrics(folder)]
    shutil.rmtree(folder, ignore_errors=True)
    same = not known.exists() or json.loads(known.read_text("utf-8")) == lines
    if not same:
        shutil.rmtree(known.parent, ignore_errors=True)
    known.parent.mkdir(parents=True, exist_ok=True)
    write_json(known, lines)
    return same


def forget(days: float) -> None:
    """Remove the runs that no claim asked for in so many days: of code that has changed since, mostly."""
    # a canary is written whenever a claim asks for the runs beside it
    for canary in (cache() / "runs").glob("*/canary.json"):
        if time.time() - canary.stat().st_mtime > days * 86_400:
            shutil.rmtree(canary.parent, ignore_errors=True)


def _modules(recipe: Recipe) -> Iterator[Path]:
    """The files that the parts of a recipe and of its learners are in."""
    recipes = (recipe, *(learner.recipe for learner in recipe.also))
    parts = [part for one in recipes for slot in one.parts().values() for part in slot.walk()]
    parts += [learner.problems for learner in recipe.also if isinstance(learner.problems, Part)]
    for part in parts:
        if function := getattr(part, "function", None):
            yield Path(str(importlib.import_module(function.__module__).__file__))
