"""Runs of leagues, each of which is run once: its outcome is kept under a hash of all that decides it, its code among it.

CACHE/league-runs/KEY/s100.json     the outcome of a run
CACHE/starts/KEY/s100.json          what it measured before its first step, for all that begin alike
DIR/unfinished/NAME-KEY/            runs of large models that were stopped: they resume
"""

from __future__ import annotations

import functools
import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rewardlab import api, registry
from rewardlab.api.inputs import policy_of, task_of
from rewardlab.checks.kept import keepable, outcome_of, start_within, with_known_start, with_start_in
from rewardlab.checks.runs import Done, Job, drop_weights, run
from rewardlab.checks.workers import Crew, Failed, run_all
from rewardlab.registry.code import hash_of
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import cache, write_json
from rewardlab.util.progress import Bar

Outcome = Done | Failed


def file_of(job: Job) -> Path:
    """Where the outcome of a job is kept."""
    config = {name: value for name, value in job.config.to_json().items() if name not in ("seed", "out")}
    return cache() / "league-runs" / _key(json.dumps([job.recipe, config], sort_keys=True), job) / f"s{job.config.seed}.json"


_KEYS: dict[str, str] = {}


def _key(document: str, job: Job) -> str:
    """The hash of all that decides the numbers of a run but its seed: with the files of the user's own that it names.

    A task without a name reaches code that is not known, so that any change of the package makes another key.
    """
    if document not in _KEYS:
        files = own_files(json.loads(document))
        known = outcome_of(job) if keepable(job) else f"own-{hash_of((), (document, api.versions(), _package()))}"
        _KEYS[document] = f"{known}-{hash_of((), files)}" if files else known
    return _KEYS[document]


def own_files(value: Any) -> list[tuple[str, int, int]]:
    """(path, size, time of change) of the files that a document names: rows, a model's folder, a reward FILE.py:function.

    An edited file, or a model trained anew in the same folder, must not be answered by runs of what was there before.
    """
    if isinstance(value, Mapping):
        return own_files(list(value.values()))
    if isinstance(value, list):
        return [found for item in value for found in own_files(item)]
    if not isinstance(value, str) or not value:
        return []
    # hf:FOLDER, FILE.py:function?as=form, FILE.jsonl
    parts = (part for part in re.split(r"[:?]", value) if ("/" in part or "." in part) and part.strip("./~ "))
    return [found for part in parts for found in _stat(Path(part).expanduser())]


def _stat(path: Path) -> list[tuple[str, int, int]]:
    try:
        # a model's folder is flat; a run's holds its models in folders
        files = sorted([*path.glob("*"), *path.glob("*/*")]) if path.is_dir() else [path]
        return [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]
    except (OSError, ValueError):
        # no path at all: a long text, or one that no file can be named
        return []


@functools.cache
def _package() -> list[tuple[str, int, int]]:
    return [found for path in sorted(registry.PACKAGE.rglob("*.py")) for found in _stat(path)]


def known(job: Job) -> Done | None:
    file = file_of(job)
    if not file.exists():
        return None
    document = json.loads(file.read_text("utf-8"))
    return Done(**document | {"curve": [tuple(point) for point in document["curve"]]})


def run_known(job: Job) -> Done:
    """The outcome of a job: the one that is known, else of a new run, which is then known."""
    if (done := known(job)) is not None:
        return done
    file = file_of(job)
    # a folder for each key: what was stopped under other settings, rows or code must not be resumed in this run's place
    folder = Path(f"{job.folder}-{hash_of((), file.parent.name)[:8]}")
    if not job.keep:
        # what a process left that was killed
        shutil.rmtree(folder, ignore_errors=True)
    done = run(replace(_with_start(job), folder=str(folder)))
    file.parent.mkdir(parents=True, exist_ok=True)
    write_json(file, asdict(done))
    if job.keep:
        drop_weights(folder)
    return done


def _with_start(job: Job) -> Job:
    """The job, whose numbers before training are those of the first run that began alike, of whichever member."""
    if keepable(job):
        return with_known_start(job)
    # of a task without a name no code is known, so that any change of the package, or of a file that is named, begins anew
    decides = json.dumps([job.recipe, job.by, job.config.to_json()])
    known = hash_of((), (start_within(job), api.versions(), _package(), own_files(json.loads(decides))))
    return with_start_in(job, cache() / "starts" / f"own-{known}" / f"s{job.config.seed}.json")


_WARM: set[tuple[str, Any, str | None]] = set()
"""(cache, task, model) of the small policies that an earlier stage has made or found."""


def warm_starts(what: str, jobs: Sequence[Job], processes: int | Crew | None) -> None:
    """Make the small policies from which these jobs start, side by side: a run whose policy another one is making only waits."""
    starts = {(str(cache()), job.config.task, job.config.model): job.config for job in jobs if not job.keep}
    configs = [config for key, config in starts.items() if key not in _WARM]
    _WARM.update(starts)
    if len(configs) < 2:
        return
    with Bar(f"{what}: initial policies", len(configs)) as bar, closing(run_all(warm, configs, processes)) as ends:
        for position, _ in ends:
            # one that fails is told by its run
            bar.advance(configs[position].model or "embedded")


def warm(config: RunConfig) -> None:
    """Make the policy of a run, if it is not there."""
    policy_of(None, config, task_of(None, config))


def run_jobs(what: str, jobs: Sequence[Job], processes: int | Crew | None) -> list[Outcome]:
    """The outcomes of jobs, in their order; those that are known are read first."""
    found: dict[int, Outcome] = {i: done for i, job in enumerate(jobs) if (done := known(job)) is not None}
    missing = [i for i in range(len(jobs)) if i not in found]
    warm_starts(what, [jobs[i] for i in missing], processes)
    runs = run_all(run_known, [jobs[i] for i in missing], processes)
    with Bar(what, len(jobs), done=len(found)) as bar, closing(runs) as outcomes:
        for position, outcome in outcomes:
            i = missing[position]
            found[i] = outcome
            failed = f" failed: {outcome.reason}" if isinstance(outcome, Failed) else ""
            bar.advance(f"{jobs[i].method}, seed {jobs[i].config.seed}{failed}")
    return [found[i] for i in range(len(jobs))]
