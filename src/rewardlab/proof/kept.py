"""Baseline runs that are kept: many claims compare with the same baseline in the same world, and one set of its runs serves all.

    CACHE/runs/KEY/s100/     the run folder of a seed, with its last weights, so that a new measure needs no new run

KEY (`keys.key_of`) is a hash of the recipe, the configuration, the versions of the libraries, and all code that the run reaches. As
a further guard, two steps are computed anew before kept runs are used: where they differ, as on a machine that computes otherwise,
the kept runs are removed.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import replace
from pathlib import Path

from rewardlab import api
from rewardlab.api.remeasure import keep_weights, remeasure
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.files import cache, new_folder, write_json

from .keys import STARTS, UNFINISHED, key_of, measured_as
from .runs import BEFORE, BESIDES, Done, Job, finished, recipe_of, run
from .starts import with_known_start

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
