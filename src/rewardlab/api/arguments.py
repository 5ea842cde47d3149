"""Checks of an API call's arguments, before anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.result import Result
from rewardlab.core import Recipe, Task
from rewardlab.data.in_memory import GivenRows, is_rows
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.runs.config import RunConfig
from rewardlab.settings.domain import PATH

FIELDS = {f.name for f in fields(RunConfig)}


def check_config(config: Any) -> None:
    """Raise RewardlabError unless this is a configuration, or None."""
    if config is not None and not isinstance(config, RunConfig):
        raise RewardlabError(
            f"config must be a RunConfig, not {_shown(config)}; single settings are given by name: steps=50, seed=1"
        )


def check_task(task: Any) -> None:
    """Raise RewardlabError unless this is a task, the name of one, or None."""
    if task is not None and not isinstance(task, str | Task):
        raise RewardlabError(
            f"task must be a name, a file of problems, rows (a list of dicts, a DataFrame, a Dataset), or a Task, not "
            f"{_shown(task)}; "
            'of problems made in Python: Task("mine", train, test, "exact_match"), where train and test are lists of '
            "ask(question, answer)"
        )


def named_task(task: Any) -> Task | str | None:
    """The task, a path as its name, and rows given in Python in the place of one. Raises RewardlabError unless this is a task, the
    name of one, rows, or None.
    """
    task = os.fspath(task) if isinstance(task, os.PathLike) else GivenRows.of(task) if is_rows(task) else task
    check_task(task)
    return task


def named_model(model: Any) -> str | Policy | None:
    """The model, a path or a finished run as its name. Raises RewardlabError for what is neither a name nor a policy."""
    if isinstance(model, Result | os.PathLike):
        return str(model.out) if isinstance(model, Result) else os.fspath(model)
    # every policy can read text and extend it: `core.Policy`
    if model is None or isinstance(model, str) or (hasattr(model, "read") and hasattr(model, "extend")):
        return model
    raise RewardlabError(f"model must be a name, a folder, or a policy (load_policy), not {_shown(model)}")


def run_folder(run: Any) -> Path:
    """The folder of a run that is given by its path or as the Result of training it."""
    if isinstance(run, str | os.PathLike | Result):
        return run.out if isinstance(run, Result) else Path(PATH.check("the folder of the run", run))
    raise RewardlabError(f"a run is given by its folder, or as the Result of train, not {_shown(run)}")


def check_settings(recipe: Any, settings: Any, changes: Mapping[str, Any]) -> None:
    """Raise RewardlabError for what is no recipe, for settings in the wrong place, and for those beside a recipe."""
    if not isinstance(recipe, str | Recipe):
        raise RewardlabError(f"a recipe is the name of a method, or what build(name) returns, not {_shown(recipe)}")
    if settings is not None and not isinstance(settings, Mapping):
        raise RewardlabError(f'settings must be a dict, such as {{"n": 8}}, not {_shown(settings)}')
    if isinstance(recipe, str):
        own = {parameter.flag.lstrip("-").replace("-", "_") for parameter in registry.parameters(recipe)}
        if lost := [name for name in changes if name in own and name not in FIELDS]:
            raise RewardlabError(f"{lost[0]} is a setting of {recipe}: settings={{{lost[0]!r}: {changes[lost[0]]!r}}}")
    elif settings:
        raise RewardlabError(
            f"settings ({', '.join(settings)}) are for a method given by its name; a recipe has its own already: "
            f"build(name, settings), or recipe.but(...)"
        )


def _shown(value: Any) -> str:
    text = repr(value)
    return f"the {type(value).__name__} {text if len(text) < 60 else text[:57] + '...'}"
