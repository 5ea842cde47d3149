"""What runs measure before they train is kept: both sides of a claim begin with the same policy, and so do the claims of a world.

    CACHE/starts/KEY/s100.json     the numbers of a seed before its first step
    DIR/starts/KEY-s0.json         the same, among the runs of the comparison in DIR

In a run of 40 updates, the measurement before them takes a sixth of the time.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rewardlab.core import Measure
from rewardlab.evals.cached_start import cached_start
from rewardlab.util.files import cache

from .keys import STARTS, keepable, start_of, start_within
from .runs import Job, kind_of, recipe_of


def with_known_start(job: Job) -> Job:
    """The job, whose numbers before training are those of an earlier run that began alike, if there was one."""
    measure = recipe_of(job).measure
    if measure is None or not keepable(job):
        return job
    # what is measured beside is within the measure already
    return _reading(job, measure, _file(job))


def with_shared_start(job: Job, folder: Path) -> Job:
    """The job, whose numbers before training are those of the first run of the comparison in `folder` that begins alike."""
    recipe = recipe_of(job)
    if recipe.measure is None or not job.config.eval_problems or kind_of(recipe) != "train":
        return job
    return _reading(job, recipe.measure, folder.resolve() / STARTS / f"{start_within(job)}-s{job.config.seed}.json")


def _reading(job: Job, measure: Measure, file: Path) -> Job:
    return replace(job, by=cached_start(of=measure, file=str(file)).to_json(), beside=False)


def _file(job: Job) -> Path:
    return cache() / STARTS / start_of(job) / f"s{job.config.seed}.json"
