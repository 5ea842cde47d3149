"""Find tasks by name: `arithmetic`, `arithmetic:difficulty=4`, a file of problems, a dataset of the hub, or rows in Python."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardlab.data.in_memory import GivenRows, is_rows
from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.find import PACKAGE
from rewardlab.settings.domain import parse_value
from rewardlab.settings.old_names import present_name

if TYPE_CHECKING:
    from rewardlab.core import Task

PATHS = ("test", "image_folder")
"""Options of problems of the user's own that are paths."""
HUB = "hub:"
"""Before the name of a dataset of the Hugging Face hub."""


@functools.cache
def task_files() -> dict[str, Path]:
    """Name to file of every task: tasks/NAME.py, or NAME/problems.py, and the same in worlds/, with a function NAME.

    Read once: they are the package's own files, and a run asks for them a dozen times.
    """
    files = {path.stem: path for room in ("tasks", "worlds") for path in sorted((PACKAGE / room).glob("*.py"))}
    files |= {path.parent.name: path for room in ("tasks", "worlds") for path in sorted((PACKAGE / room).glob("*/problems.py"))}
    # a search in the text: importing every task would load torch and take seconds
    return {name: path for name, path in files.items() if f"\ndef {name}(" in path.read_text("utf-8")}


def tasks() -> list[str]:
    """Names of the tasks that come with rewardlab."""
    return sorted(name for name in task_files() if name != "records")


def task(name: Any, **options: Any) -> Task:
    """A task by name (`arithmetic`, `arithmetic:difficulty=4,redundant=0.3`), or the problems in a file, folder or hub dataset.

    Or those in rows given in Python, which are read as those of a file are: a list of dicts, a DataFrame of pandas, a Dataset of
    Hugging Face, columns {"prompt": [...], "answer": [...]}, or splits {"train": rows, "test": rows}.
    An option without a default may be written without its name: `reasoning_gym:chain_sum,min_terms=2`.
    """
    if not isinstance(name, str | os.PathLike) and hasattr(name, "train") and hasattr(name, "verifier"):
        return _as_it_is(name, options)
    if is_rows(options.get("test")):
        options["test"] = GivenRows.of(options["test"], "test rows", "test row")
    if is_rows(name) or isinstance(name, GivenRows) or isinstance(options.get("test"), GivenRows):
        return _of_rows(name, options)
    check_task(name := _named(name))
    plain, _, written = name.partition(":")
    if plain in tasks():
        options = {k: v for k, v in options.items() if v is not None}
        return _load(plain, {**parse_options(written, _required(plain)), **options}, name, options)
    name = _absolute(name)
    for other in PATHS:
        if options.get(other):
            options[other] = _absolute(os.fspath(options[other]))
    return _load("records", {"path": name, **options}, name, options)


def _as_it_is(task: Any, options: Mapping[str, Any]) -> Any:
    if set_options := [name for name, value in options.items() if value is not None]:
        raise RewardlabError(f"{' and '.join(set_options)}: only for problems that are read, but {task.name} is a Task already")
    return task


def _named(name: Any) -> str:
    if not isinstance(name, str | os.PathLike):
        raise RewardlabError(
            "a task is a name, a file of problems, or rows (a list of dicts, a DataFrame, a Dataset), "
            f"not the {type(name).__name__} {str(name)[:60]}"
        )
    return os.fspath(name)


def _of_rows(data: Any, options: dict[str, Any]) -> Task:
    """The task of rows given in Python, which cannot be loaded again by a name."""
    source = GivenRows.of(data) if is_rows(data) or isinstance(data, GivenRows) else _absolute(_named(data))
    options |= {name: _absolute(os.fspath(of)) for name in PATHS if (of := options.get(name)) and not isinstance(of, GivenRows)}
    return replace(_load("records", {"path": source, **options}, source, {}), source=None)


def check_task(name: str) -> None:
    """Raise RewardlabError for a name that is neither a task's nor that of problems elsewhere. Nothing is imported."""
    plain, colon, written = name.partition(":")
    known = tasks()
    if plain in known and colon and not written.strip():
        raise RewardlabError(f"{name!r} has nothing after the colon: write {plain}, or {plain}:OPTION=VALUE")
    if plain in known or is_elsewhere(name):
        return
    problem = unknown("task", plain, known)
    hub = f"{HUB}{name}" if name.count("/") == 1 else f"{HUB}OWNER/NAME"
    raise RewardlabError(f"{problem} (or give the path of a file or folder of problems, or {hub} for a dataset of the hub)")


def is_elsewhere(name: str) -> bool:
    """Whether a name is that of the user's own problems, or of a dataset of the hub."""
    if isinstance(name, GivenRows):
        return True
    if name.partition(":")[0] in tasks():
        return False
    # no task of ours has a dot in its name
    return name.startswith(HUB) or bool(Path(name.partition(":")[0]).suffix) or Path(name).expanduser().exists()


def endless(sized: Task) -> Task:
    """The same task without its option `size`, which limits what a policy is trained on but not what it is warmed up on."""
    source = sized.source or {"name": "", "options": {}}
    plain, _, written = source["name"].partition(":")
    remaining = [option for option in split_options(written) if option.partition("=")[0].strip() != "size"]
    if plain not in tasks() or ("size" not in source["options"] and len(remaining) == len(split_options(written))):
        return sized
    options = {k: v for k, v in source["options"].items() if k != "size"}
    return task(":".join([plain, *([",".join(remaining)] if remaining else [])]), **options)


def _absolute(source: str) -> str:
    """The user's own data by a name that is valid from any working folder."""
    return source if source.startswith(HUB) else str(Path(source).expanduser().resolve())


def split_options(text: str) -> list[str]:
    """The options in a text, split at commas outside brackets."""
    return [item for item in re.split(r",(?![^\[]*\])", text) if item]


def parse_options(text: str, first: str | None = None) -> dict[str, Any]:
    """`difficulty=[2,4],redundant=0.3` as a dict, each value read by `parse_value`; first: name of a first value without one."""
    options = {}
    for i, item in enumerate(split_options(text)):
        key, equals, value = item.partition("=")
        if not equals and first and i == 0:
            key, equals, value = first, "=", item
        if not equals:
            raise RewardlabError(f"the option {item!r} has no value; write {item}=VALUE")
        options[key.strip().replace("-", "_")] = parse_value(value.strip())
    return options


def _load(name: str, options: dict[str, Any], written: str, besides: dict[str, Any]) -> Task:
    """Call the function in the file of the task.

    The task keeps its source (the name as `written`, and the options passed `besides`), from which it can be loaded again.
    """
    from rewardlab.registry.settings import fit, hyperparameters, require

    function = _function(name)
    known = hyperparameters(function)
    # run folders and claims name options as they were called then
    bound = {present_name(k, known): v for k, v in options.items() if v is not None}
    if "options" in known and (own := {k: bound.pop(k) for k in list(bound) if k not in known}):
        # a task with a parameter `options` passes on options that it does not have itself, as reasoning_gym does to its generators
        bound["options"] = own
    for key in bound:
        if key not in known and key in hyperparameters(_function("records")):
            raise RewardlabError(f"{key} is for problems of your own; the task {name} has prompts and answers of its own")
        if key not in known:
            raise unknown(f"option of the task {name}", key, known)
    require(name, function, bound)
    fitted = {k: fit(function, k, v) for k, v in bound.items()}
    try:
        source = {"name": written, "options": {k: v for k, v in besides.items() if v is not None}}
        return replace(function(**fitted), source=source)
    except (TypeError, ValueError) as e:
        raise RewardlabError(f"the task {name} does not take {fitted}: {e}") from e


def _function(name: str) -> Any:
    path = task_files()[name].relative_to(PACKAGE).with_suffix("")
    return getattr(importlib.import_module(".".join(("rewardlab", *path.parts))), name)


def _required(name: str) -> str | None:
    """The first option that a task has no default for."""
    options = inspect.signature(_function(name)).parameters.values()
    return next((p.name for p in options if p.default is p.empty), None)
