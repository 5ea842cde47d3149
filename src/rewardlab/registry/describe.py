"""What the index says of one method, read from its docstring, its claim and the recipe it builds."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from types import ModuleType
from typing import Any

from rewardlab.core import Recipe, Update

from .settings import Parameter

YEAR = re.compile(r"\b(19|20)\d\d\b")
BASE = re.compile(r"^    base = base or ([a-z]\w*)\(", re.MULTILINE)
SENTENCE = re.compile(r"(?<=[\d)])\. (?=[A-Z])")


def describe(name: str, folder: str, module: ModuleType, recipe: Recipe, baseline: Recipe | None) -> dict[str, Any]:
    """Everything `list` and `show` tell of a method but its verdict, as plain data."""
    claim = getattr(module, "claim", None)
    return {
        **read_docstring(module.__doc__ or ""),
        "system": getattr(module, "system", None if folder == "baselines" else system_of(name)),
        "kind": getattr(module, "kind", "method"),
        "baseline": baseline_of(module),
        "claim": claim.says if claim else None,
        "formula": str(recipe),
        "changes": changes(baseline, recipe) if baseline else {},
    }


def baseline_of(module: ModuleType) -> str | None:
    """The method it is compared with: as the module states it, else as its claim does, else the one it builds on.

    A claim may set a method against itself under other settings; that is no baseline to tell it by.
    """
    if hasattr(module, "baseline"):
        return module.baseline
    claim, own = getattr(module, "claim", None), module.__name__.rpartition(".")[2]
    if claim and claim.versus and claim.versus != own:
        return claim.versus
    builds_on = BASE.search(inspect.getsource(module))
    return builds_on[1] if builds_on else None


def system_of(name: str) -> str:
    return name.removeprefix("_").replace("_", "-")


def read_docstring(text: str) -> dict[str, str]:
    """`Title: idea`, then what it does, with its equation, then its source, which a remark may follow."""
    first, *rest = inspect.cleandoc(text).split("\n\n")
    first = " ".join(first.split())
    title, colon, idea = first.partition(": ")
    dated = [i for i, paragraph in enumerate(rest) if YEAR.search(paragraph) and not paragraph.startswith(" ")]
    reference = ""
    if dated:
        reference, *remark = SENTENCE.split(" ".join(rest[dated[-1]].split()), maxsplit=1)
        rest[dated[-1] : dated[-1] + 1] = remark
    return {
        "title": title if colon else "",
        "idea": idea if colon else first,
        "text": "\n\n".join(rest),
        "reference": reference.removesuffix("."),
    }


def changes(before: Recipe, after: Recipe) -> dict[str, list[str | None]]:
    """Slot by slot, then field by field of the update, what differs: [before, after], None where there is nothing."""
    old, new = _slots(before), _slots(after)
    return {k: [old.get(k), new.get(k)] for k in old | new if old.get(k) != new.get(k)}


def plain_parameters(found: list[Parameter]) -> list[list[Any]]:
    """Parameters as JSON holds them."""
    scalar = (str, int, float, bool)
    return [[p.flag, p.type, p.default if isinstance(p.default, scalar) else str(p.default), p.method] for p in found]


def _slots(recipe: Recipe) -> dict[str, str | None]:
    filled = {slot: str(part) for slot, part in recipe.parts().items()}
    empty = {f.name: None for f in fields(Recipe) if f.name not in ("also", "update", "name")}
    update = {f.name: f"{getattr(recipe.update, f.name):g}" for f in fields(Update)}
    return empty | filled | update | {f"also {learner.name}": str(learner.recipe) for learner in recipe.also}
