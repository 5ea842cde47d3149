"""A rehearsal of runs: one step each, so that what would end them late ends them now.

It finds a measure that does not exist, a missing package, a column that cannot be read, a reward that raises, and a model that
does not fit into memory, before the first of many long runs.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from rewardlab import api
from rewardlab.api.inputs import held_out, task_of
from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.util.files import write_json
from rewardlab.util.progress import Bar

from .keys import STARTS, start_within
from .runs import BEFORE, Job, finished, kind_of, recipe_of, run
from .starts import with_shared_start
from .workers import Failed, run_all

PROBLEMS = 128  # held-out problems that a rehearsal measures on: a share of them must hold every kind
FEW = 8  # of them before and after its step, where only the names matter


def rehearsed(jobs: Sequence[Job], processes: int | None = None) -> list[tuple[str, ...]]:
    """The names of the numbers that each job will measure. Raises RewardlabError, naming the method, where one fails."""
    names: dict[int, tuple[str, ...]] = {}
    with Bar("one step of each method, to check", len(jobs)) as bar, closing(run_all(rehearse, jobs, processes)) as outcomes:
        for i, outcome in outcomes:
            if isinstance(outcome, Failed):
                raise RewardlabError(f"{jobs[i].method} fails at its first step: {outcome.reason}")
            bar.advance(jobs[i].method)
            names[i] = outcome
    return [names[i] for i in range(len(jobs))]


def rehearse(job: Job) -> tuple[str, ...]:
    """Do one step of a job, and return the names of the numbers that it measures. Of its run, nothing that is written stays."""
    recipe, folder = recipe_of(job), Path(job.folder)
    config = job.config.but(eval_problems=min(PROBLEMS, job.config.eval_problems), track=())
    if kind_of(recipe) != "train":
        # it takes no steps: answering a few problems is its rehearsal
        return tuple(run(replace(job, config=config, keep=False)).numbers)
    try:
        few = min(FEW, config.eval_problems)
        short = config.but(steps=1, budget=None, checkpoint_every=0, eval_problems=few, out=folder)
        one_step = with_shared_start(replace(job, config=short), folder.parent)
        trained = api.train(recipe_of(one_step), config=short)
        done = finished(folder)
        assert done is not None
        assert trained.run is not None
        # on more problems, since a number that is undefined (a length of right replies where none is right) is not logged
        more = _measured(replace(job, config=config), trained.run, folder.parent / STARTS) if config.eval_problems else []
        return tuple(dict.fromkeys([*done.numbers, *(prefix + name for prefix in ("", BEFORE) for name in more)]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(job: Job, trained: Run, starts: Path) -> list[str]:
    """The names of what a job measures: measured once for all jobs that begin alike, whose names are kept in `starts`."""
    measure = recipe_of(job).measure
    if measure is None:
        return []
    file = starts / f"{start_within(job)}-names.json"
    if not file.exists():
        numbers = measure(held_out(task_of(None, job.config), job.config.eval_problems), trained.for_evaluation())
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, list(numbers))
    return json.loads(file.read_text("utf-8"))
