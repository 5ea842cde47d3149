"""Names to files: methods, parts and tasks, found by walking their folders. There is no list to edit.

    methods/baselines/grpo.py   holds   def grpo(base=None, *, group_size=8, ...) -> Recipe

Folders with methods of your own: REWARDLAB_METHODS=DIR, holding DIR/FOLDER/NAME.py. What `list` and `show` tell is kept
in index.json (see `catalogue`):

    python -m rewardlab.registry --write    make index.json;    --check    exit 1 if it is stale
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rewardlab.core import Recipe, Task
    from rewardlab.errors import RewardlabError

    from .settings import Method, Parameter

PACKAGE = Path(__file__).parents[1]


def method_roots() -> list[Path]:
    """The package's methods, then the folders in REWARDLAB_METHODS."""
    extra = os.environ.get("REWARDLAB_METHODS", "").split(os.pathsep)
    return [PACKAGE / "methods", *(Path(folder).resolve() for folder in extra if folder)]


def methods() -> dict[str, Path]:
    """Name to file of every method."""
    found: dict[str, Path] = {}
    for root in method_roots():
        for path in sorted(root.glob("*/*.py")):
            if path.stem.startswith("_") and not path.stem[1:2].isdigit():
                continue
            if path.stem in found:
                raise error(f"two methods are named {path.stem}: {found[path.stem]} and {path}; rename one")
            found[path.stem] = path
    return found


def spell(name: str) -> str:
    """The file name of a method: `ixc-2.5-reward` is ixc_2_5_reward, and a leading digit follows `_`."""
    name = re.sub(r"[-.]", "_", name.strip())
    return f"_{name}" if name[:1].isdigit() else name


def file_of(name: str) -> Path:
    """The file of a method; a name that does not exist raises RewardlabError with the nearest that do."""
    known = methods()
    if spell(name) not in known:
        raise unknown("method", name, known)
    return known[spell(name)]


def dotted(path: Path) -> str:
    """The module that a method's file is imported as."""
    return f"rewardlab.methods.{path.parent.name}.{path.stem}"


def reach_methods() -> None:
    """Let files in the folders of REWARDLAB_METHODS be imported as methods; a saved recipe names its parts so."""
    package = importlib.import_module("rewardlab.methods")
    package.__path__ += [root for root in map(str, method_roots()) if root not in package.__path__]


def module_of(name: str) -> ModuleType:
    """A method's module, imported now."""
    path = file_of(name)
    where = dotted(path)
    reach_methods()
    try:
        return importlib.import_module(where)
    except (ImportError, SyntaxError) as e:
        raise error(f"cannot import {path}: {e}") from e


def method(name: str) -> Callable[..., Recipe]:
    """A method's function, imported now."""
    function = getattr(module_of(name), spell(name), None)
    if not callable(function):
        raise error(f"{file_of(name)} has no function {spell(name)}; a method file holds a function of its own name")
    return function


def build(name: str, settings: Mapping[str, Any] | None = None) -> Recipe:
    """The recipe of a method, or of several stacked (`grpo+hapo`), under these settings.

    A setting goes to the method that takes it; `hapo.weight` names the method; fields of `Update` (lr, problems, ...)
    go to the recipe. Raises RewardlabError for an unknown name, and for a setting that two methods take.
    """
    from .settings import compose

    return compose(_stacked(name), settings or {})


def parameters(name: str) -> list[Parameter]:
    """(flag, type, default, method) of every setting of a method or a stack."""
    from .settings import parameters

    return parameters(_stacked(name))


def rows(folder: str | None = None) -> list[dict[str, Any]]:
    """What is known of every method, by folder and name, without importing one (unless its file has changed)."""
    from . import catalogue

    return catalogue.rows(folder)


def verifiers() -> dict[str, str]:
    """Names of the verifiers, with the first sentence of what they say of themselves. Imports none."""
    found = {}
    for path in sorted((PACKAGE / "verifiers").rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any("verifier" in ast.unparse(d) for d in node.decorator_list):
                found[node.name] = (ast.get_docstring(node) or "").split("\n")[0]
    return dict(sorted(found.items()))


def tasks() -> list[str]:
    """Names of the tasks that come with rewardlab."""
    return sorted(name for name in task_files() if name != "records")


def task_files() -> dict[str, Path]:
    """Name to file of every task: tasks/NAME.py, or tasks/NAME/problems.py, with a function NAME."""
    files = {path.stem: path for path in sorted((PACKAGE / "tasks").glob("*.py"))}
    files |= {path.parent.name: path for path in sorted((PACKAGE / "tasks").glob("*/problems.py"))}
    return {name: path for name, path in files.items() if f"\ndef {name}(" in path.read_text("utf-8")}


def task(name: str, **options: Any) -> Task:
    """A task by name (`arithmetic`, `arithmetic:difficulty=4,redundant=0.3`), or the problems in a file or folder.

    What a task cannot do without may be written alone: `reasoning_gym:chain_sum,min_terms=2`.
    """
    plain, _, written = name.partition(":")
    known = tasks()
    if plain in known:
        options = {k: v for k, v in options.items() if v is not None}
        return _load_task(plain, {**parse_options(written, _required(plain)), **options}, name, options)
    if Path(name).suffix in (".jsonl", ".parquet") or Path(name).exists():
        name = str(Path(name).resolve())
        return _load_task("records", {"path": name, **options}, name, options)
    problem = unknown("task", plain, known)
    raise error(f"{problem} (or give the path of a .jsonl or .parquet file, or of a dataset folder)")


def parse_options(text: str, first: str | None = None) -> dict[str, Any]:
    """`difficulty=[2,4],redundant=0.3` as a dict, each value read by `parse_value`; first: name of a first value without one."""
    options = {}
    for i, item in enumerate(filter(None, re.split(r",(?![^\[]*\])", text))):
        key, equals, value = item.partition("=")
        if not equals and first and i == 0:
            key, equals, value = first, "=", item
        if not equals:
            raise error(f"the option {item!r} has no value; write {item}=VALUE")
        options[key.strip().replace("-", "_")] = parse_value(value.strip())
    return options


def parse_value(text: str) -> Any:
    """A number, true, false, null, or a [list] of them, as JSON writes it; else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def error(message: str) -> RewardlabError:
    # imported when it is needed, since core imports torch, which `list` and `show` do without
    from rewardlab.errors import RewardlabError

    return RewardlabError(message)


def unknown(kind: str, name: str, known: Any) -> RewardlabError:
    from rewardlab.errors import unknown

    return unknown(kind, name, known)


def _stacked(name: str) -> list[Method]:
    return [(spell(n), method(n)) for n in name.split("+")]


def _load_task(name: str, options: dict[str, Any], written: str, besides: dict[str, Any]) -> Task:
    """Call tasks/NAME.py; the task remembers how it was `written`, and what was given `besides`, to be loaded again."""
    from .settings import fit, hyperparameters, require

    function = _task_function(name)
    known = hyperparameters(function)
    given = {k: v for k, v in options.items() if v is not None}
    if "options" in known and (own := {k: given.pop(k) for k in list(given) if k not in known}):
        # what the task itself does not know is for what it makes its problems with
        given["options"] = own
    for key in given:
        if key not in known:
            raise unknown(f"option of the task {name}", key, known)
    require(name, function, given)
    fitted = {k: fit(function, k, v) for k, v in given.items()}
    try:
        asked = {k: v for k, v in besides.items() if v is not None}
        return replace(function(**fitted), source={"name": written, "options": asked})
    except (TypeError, ValueError) as e:
        raise error(f"the task {name} does not take {fitted}: {e}") from e


def _task_function(name: str) -> Any:
    path = task_files()[name].relative_to(PACKAGE).with_suffix("")
    return getattr(importlib.import_module(".".join(("rewardlab", *path.parts))), name)


def _required(name: str) -> str | None:
    """The first option that a task has no default for."""
    import inspect

    options = inspect.signature(_task_function(name)).parameters.values()
    return next((p.name for p in options if p.default is p.empty), None)
