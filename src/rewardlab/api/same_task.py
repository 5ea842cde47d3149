"""Whether a run is resumed on the task, and from the model, that it began with."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.runs.config import IN_PYTHON
from rewardlab.tasks.sources import Listed

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
    """Raise RewardlabError where a run that goes on lacks its task or its model."""
    if task is None and not document.get("source"):
        raise RewardlabError(f"{folder} was trained on a task made in Python; resume it with rewardlab.resume(folder, task=...)")
    if model is None and document.get("model") == IN_PYTHON:
        raise RewardlabError(f"{folder} began from a model made in Python; resume it with rewardlab.resume(folder, model=...)")
