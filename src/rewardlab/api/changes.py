"""Permitted changes on resuming a run: settings without effect on results, and fixed rewards."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.runs.config import IN_PYTHON, ON_RESUME, RunConfig
from rewardlab.runs.folder import checkpointed, steps_done
from rewardlab.runs.metrics import read_metrics
from rewardlab.runs.named import read_config
from rewardlab.runs.sources import changes as changed_files
from rewardlab.runs.sources import fingerprint
from rewardlab.runs.track import trackers
from rewardlab.tasks.sources import Listed
from rewardlab.util.files import disk_errors, write_json


def resumable(folder: Path) -> dict[str, Any]:
    """The config.json of a run that this engine trains. Raises RewardlabError for any other folder."""
    document = read_config(folder)
    if (engine := document.get("engine", "embedded")) != "embedded":
        raise RewardlabError(
            f"{folder} was trained through {engine.upper()} and cannot be resumed; start a new run from {folder / 'model'}"
        )
    return document


def prepare(folder: Path, changes: Mapping[str, Any], reward_changed: bool) -> tuple[dict[str, Any], bool]:
    """The config.json of a run that is resumed, with these settings in it, and whether it differs from the one in the folder.

    Nothing is written. Raises RewardlabError if the run cannot be resumed so.
    """
    document = resumable(folder)
    config = RunConfig.from_json(document)
    differing = _settings(folder, config, changes)
    if (folder / "summary.json").exists():
        if not {"steps", "budget"} & differing.keys():
            return document, False
        _refuse_if_over(folder, config.but(**differing))
    if steps_done(folder) and not checkpointed(folder):
        raise RewardlabError(f"{folder} has no checkpoint left to resume from; start a new run from its last model")
    files = _files(folder, document, reward_changed)
    if differing or files:
        document = _with_changes(folder, document, config, differing, files)
    return document, bool(differing or files)


def write(folder: Path, document: Mapping[str, Any]) -> None:
    """Put the changed configuration of a run in place. Its summary and report, those of a shorter run, are taken away."""
    with disk_errors(folder / "config.json"):
        # before the configuration: a run killed in between is a run of the old length, whose summary is written again
        for name in ("summary.json", "report.html"):
            (folder / name).unlink(missing_ok=True)
        write_json(folder / "config.json", document)


def _settings(folder: Path, config: RunConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the changes that differ from the run's settings, checked."""
    for name in changes:
        if name not in ON_RESUME:
            raise RewardlabError(f"{name} cannot change when a run is resumed; these can: {', '.join(ON_RESUME)}")
    given = dict(changes)
    if "track" in given:
        given["track"] = tuple(trackers(given["track"]))
    config.but(**given)  # raises for a value outside its domain
    step, tokens = _saved(folder)
    for name, done, unit in (("steps", step, "steps"), ("budget", tokens, "tokens")):
        if given.get(name) is not None and given[name] < done:
            raise RewardlabError(f"{folder} has done {done} {unit} already: {name} cannot be {given[name]}")
    return {name: value for name, value in given.items() if value != getattr(config, name)}


def _saved(folder: Path) -> tuple[int, int]:
    """The step of the newest checkpoint, and the tokens used up to it."""
    step = max(checkpointed(folder), default=0)
    return step, int(max((line.get("tokens", 0) for line in read_metrics(folder) if line["step"] <= step), default=0))


def _refuse_if_over(folder: Path, config: RunConfig) -> None:
    """Raise RewardlabError if a finished run has nothing left to do under this configuration either."""
    step, tokens = _saved(folder)
    if step >= (config.settled().steps or 0) or (config.budget is not None and tokens >= config.budget):
        used = f"{step} of {config.steps} steps" + (f" and {tokens} of {config.budget} tokens" if config.budget else "")
        raise RewardlabError(f"{folder} is over after {used}; to extend it, every limit that it has must be higher")


def _files(folder: Path, document: Mapping[str, Any], reward_changed: bool) -> dict[str, str]:
    """What has changed of the files of the run's rewards and methods. Raises RewardlabError unless that is wanted."""
    # runs of older versions have no record of them
    found = changed_files(document.get("files", {}))
    if found and not reward_changed:
        said = "; ".join(f"{path}: {what}" for path, what in found.items())
        step, _ = _saved(folder)
        raise RewardlabError(
            f"a file of the run's rows, rewards, tools, corpus or methods has changed since the run began ({said}). Restore it, or "
            f"give --reward-changed (in Python: reward_changed=True) to resume from step {step} with the new one"
        )
    if gone := [path for path in found if not Path(path).is_file()]:
        raise RewardlabError(f"there is no file {' and no file '.join(gone)}, which the run's rows, rewards or methods come from")
    return found


def _with_changes(
    folder: Path, document: Mapping[str, Any], config: RunConfig, differing: Mapping[str, Any], files: Mapping[str, str]
) -> dict[str, Any]:  # fmt: skip
    """The document with the new values, and with a list of what was changed after which step."""
    entry: dict[str, Any] = {"after_step": _saved(folder)[0], "time": time.strftime("%Y-%m-%d %H:%M:%S")}
    after = config.but(**differing)
    # some settings stand in config.json only where they are set
    values = {name: after.to_json().get(name, getattr(after, name)) for name in differing}
    if differing:
        entry["settings"] = {name: [getattr(config, name), values[name]] for name in differing}
    new = {**document, **values, "changes": [*document.get("changes", ()), entry]}
    if files:
        now = {path: fingerprint(Path(path)) for path in files}
        entry["files"] = {path: [document["files"][path]["sha256"], now[path]["sha256"]] for path in files}
        new["files"] = {**document["files"], **now}
    return new


# ---- Whether a run is resumed on the task, and from the model, that it began with ------------------------------------

BASE = "base_weights"
"""What config.json calls the hash of the weights below adapters, which checkpoints do not hold."""


def base_of(policy: Policy) -> dict[str, str]:
    """The hash of the weights below a policy's adapters, which stay as they are, for config.json; {} where it is not known."""
    base = getattr(policy, "base", None)
    return {BASE: base.weights} if base is not None and base.weights else {}


def check_base(folder: Path, document: Mapping[str, Any], policy: Policy) -> None:
    """Raise RewardlabError where the model below a run's adapters holds other weights than when the run began."""
    now = base_of(policy).get(BASE)
    if now and document.get(BASE) not in (None, now):
        raise RewardlabError(
            f"{folder} trains adapters on {document.get('model')}, which holds other weights now than when the run began: put the "
            "old ones back, or begin a new run"
        )


SAMPLE = 100
"""Problems of either side that stand for all of them."""


def digest(task: Task) -> str:
    """A hash of the first problems of a task made in Python, in training and held out, with their answers."""
    # training problems that are made on demand are known by their task's name alone
    train = task.train.problems[:SAMPLE] if isinstance(task.train, Listed) else ()
    problems = [*train, *task.test[:SAMPLE]]
    said = "\x1f".join(f"{problem.key}\x1e{problem.answer!r}" for problem in problems)
    return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()


def check_same(folder: Path, document: Mapping[str, Any], task: Task | str | None) -> None:
    """Raise RewardlabError where the run is given another task than its own."""
    source = document.get("source")
    if isinstance(task, str):
        why = "the run knows its task: leave it out" if source else f"give the Task that it was trained on, {document['task']}"
        raise RewardlabError(f"{folder} cannot be resumed on the task named {task!r}: {why}")
    if task is not None and source and (task.source is None or dict(task.source) != source):
        raise RewardlabError(f"{folder} is resumed on its own task, {source['name']}, which is loaded by name: leave task= out")
    if task is not None and task.name != document["task"]:
        raise RewardlabError(f"{folder} was trained on the task {document['task']}, not {task.name}; a run cannot change its task")


def check_given(folder: Path, document: Mapping[str, Any], task: Task | None, model: str | Policy | None) -> None:
    """Raise RewardlabError where a run that is resumed lacks its task or its model."""
    if task is None and not document.get("source"):
        raise RewardlabError(f"{folder} was trained on a task made in Python; resume it with rewardlab.resume(folder, task=...)")
    if model is None and document.get("model") == IN_PYTHON:
        raise RewardlabError(f"{folder} began from a model made in Python; resume it with rewardlab.resume(folder, model=...)")
