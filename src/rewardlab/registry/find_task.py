"""Find tasks by name: `arithmetic`, `arithmetic:difficulty=4`, or a file of your own problems."""

from __future__ import annotations

import importlib
import inspect
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rewardlab.core.literals import parse_value
from rewardlab.errors import RewardlabError, unknown

from .find import PACKAGE

if TYPE_CHECKING:
    from rewardlab.core import Task

HUB = "hub:"
"""Before the name of a dataset of the Hugging Face hub."""


def task_files() -> dict[str, Path]:
    """Name to file of every task: tasks/NAME.py, or NAME/problems.py, and the same in worlds/, with a function NAME."""
    files = {path.stem: path for room in ("tasks", "worlds") for path in sorted((PACKAGE / room).glob("*.py"))}
    files |= {path.parent.name: path for room in ("tasks", "worlds") for path in sorted((PACKAGE / room).glob("*/problems.py"))}
    # a search in the text: importing every task would load torch and take seconds
    return {name: path for name, path in files.items() if f"\ndef {name}(" in path.read_text("utf-8")}


def tasks() -> list[str]:
    """Names of the tasks that come with rewardlab."""
    return sorted(name for name in task_files() if name != "records")


def task(name: str, **options: Any) -> Task:
    """A task by name (`arithmetic`, `arithmetic:difficulty=4,redundant=0.3`), or the problems in a file, folder or hub dataset.

    An option without a default may be written without its name: `reasoning_gym:chain_sum,min_terms=2`.
    """
    check_task(name)
    plain, _, written = name.partition(":")
    if plain in tasks():
        options = {k: v for k, v in options.items() if v is not None}
        return _load(plain, {**parse_options(written, _required(plain)), **options}, name, options)
    name = _absolute(name)
    if options.get("test"):
        options["test"] = _absolute(options["test"])
    return _load("records", {"path": name, **options}, name, options)


def check_task(name: str) -> None:
    """Raise RewardlabError for a name that is neither a task's nor that of problems elsewhere. Nothing is imported."""
    plain, colon, written = name.partition(":")
    known = tasks()
    if plain in known and colon and not written.strip():
        raise RewardlabError(f"{name!r} has nothing after the colon: write {plain}, or {plain}:OPTION=VALUE")
    if plain in known or _elsewhere(name):
        return
    problem = unknown("task", plain, known)
    hub = f"{HUB}{name}" if name.count("/") == 1 else f"{HUB}OWNER/NAME"
    raise RewardlabError(f"{problem} (or give the path of a file or folder of problems, or {hub} for a dataset of the hub)")


def _elsewhere(name: str) -> bool:
    """Whether a name is that of the user's own problems, or of a dataset of the hub."""
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
    from .settings import fit, hyperparameters, require

    function = _function(name)
    known = hyperparameters(function)
    bound = {k: v for k, v in options.items() if v is not None}
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
