"""Parts by slot and name, and parts saved as plain data.

    {"part": "credit:center", "with": {}}                     a shared part: its slot, and its name in that slot
    {"part": "credit:dapo/drop_outliers", "with": {...}}      a part of one method's own file
    {"part": "credit:my.module:mine", "with": {...}}          a part outside rewardlab, in a module that can be imported
    {"expression": "reward:Sum", "of": [...]}                 parts joined by an operator

A saved part does not say which file it is in, so files can move. What was saved by older versions is read through `old_names`.
"""

from __future__ import annotations

import ast
import functools
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError, unknown

from .old_names import current_name

PACKAGE = Path(__file__).parents[1]
ROOMS = ("rewards", "verifiers", "tasks", "envs", "rollouts", "credit", "objectives", "select", "evals")
SLOT_OF = {"verifier": "reward", "operator": "reward"}
"""Slots of decorators that are not named after theirs."""
DECORATORS = (
    *("rollout", "reward", "verifier", "operator", "credit", "objective", "weighting", "select", "measure", "loop", "study"),
    "environment",
)


@functools.cache
def shared_parts() -> dict[tuple[str, str], Path]:
    """(slot, name) to file, of every part in the rooms of parts. Read from the files' syntax; imports none."""
    found: dict[tuple[str, str], Path] = {}
    for room in ROOMS:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            for key in parts_in(path):
                if key in found:
                    raise RewardlabError(f"two {key[0]} parts are named {key[1]}: {found[key]} and {path}; rename one")
                found[key] = path
    return found


def parts_in(path: Path) -> list[tuple[str, str]]:
    """(slot, name) of the parts that a file defines."""
    functions = (node for node in ast.parse(path.read_text("utf-8"), str(path)).body if isinstance(node, ast.FunctionDef))
    return [(SLOT_OF.get(kind, kind), node.name) for node in functions for kind in _decorators(node)]


def _decorators(node: ast.FunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Name) and called.id in DECORATORS:
            yield called.id


def slots() -> list[str]:
    return sorted({slot for slot, _ in shared_parts()})


def part(slot: str, name: str, *of: Any, **settings: Any) -> Any:
    """The part of this name in a slot (`part("reward", "correct")`), with its hyperparameters bound; of: operands."""
    return _template(slot, name)(*of, **settings)


def _template(slot: str, name: str) -> Any:
    known = shared_parts()
    if (slot, name) not in known:
        if slot not in slots():
            raise unknown("slot", slot, slots())
        raise unknown(f"{slot} part", name, [n for s, n in known if s == slot])
    return getattr(importlib.import_module(_module(known[slot, name])), name)


def _module(path: Path) -> str:
    return ".".join(("rewardlab", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


def load_part(data: Any) -> Any:
    """The inverse of `Part.to_json`: rebuild parts from plain data."""
    if isinstance(data, list):
        return [load_part(x) for x in data]
    if not isinstance(data, dict):
        return data
    if "part" in data:
        template = _saved(current_name(data["part"]))
        return template(*map(load_part, data.get("of", ())), **{k: load_part(v) for k, v in data["with"].items()})
    if "expression" in data:
        return _expression(current_name(data["expression"]))(*(load_part(x) for x in data["of"]))
    return {k: load_part(v) for k, v in data.items()}


def _saved(where: str) -> Any:
    """The template of a part, as it was saved."""
    slot, _, name = where.partition(":")
    module, colon, function = name.rpartition(":")
    method, slash, own = name.partition("/")
    if colon:
        return _imported(module, function)
    if slash:
        from .find import module_of

        found: Any = getattr(module_of(method), own, None)
        if found is None:
            raise RewardlabError(f"cannot find the part {where}: the method {method} has none of that name")
        return found
    return _template(slot, name)


def _imported(module: str, name: str) -> Any:
    try:
        return functools.reduce(getattr, name.split("."), importlib.import_module(module))
    except (ImportError, AttributeError) as e:
        raise RewardlabError(f"cannot find the part {module}:{name}: {e}") from e


def _expression(where: str) -> Any:
    import rewardlab.core.slots
    import rewardlab.rewards.reward  # noqa: F401  these modules define them all
    from rewardlab.core.part import Expression

    def below(kind: Any) -> Iterator[Any]:
        for child in kind.__subclasses__():
            yield child
            yield from below(child)

    known = {f"{kind.slot}:{kind.__name__}": kind for kind in below(Expression)}
    if where not in known:
        raise unknown("expression", where, known)
    return known[where]


def load_recipe(data: dict[str, Any]) -> Any:
    """The inverse of `Recipe.to_json`."""
    from rewardlab.core import Learner, Recipe, Update

    def learner(saved: dict[str, Any]) -> Learner:
        return Learner(**saved | {"recipe": load_recipe(saved["recipe"]), "problems": load_part(saved["problems"])})

    slots = {k: load_part(v) for k, v in data.items() if k not in ("also", "update", "name")}
    return Recipe(**slots, also=tuple(map(learner, data["also"])), update=Update(**data["update"]), name=data["name"])
