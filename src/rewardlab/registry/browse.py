"""What `rewardlab parts` shows: every part, task and model, as its file describes it. Imports none of them, and no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.find import PACKAGE, methods
from rewardlab.registry.index import Definition, function_in, imports_in, literal_in, parts_in, read_each, values_of
from rewardlab.registry.named_tasks import task_files
from rewardlab.registry.parts import shared_definitions

ORDER = (
    "rollout", "reward", "verifier", "operator", "credit", "objective", "weighting", "select", "measure", "environment", "loop",
    "study", "task", "model",
)  # fmt: skip
"""What there is to browse: the slots of a recipe, verifiers and operators apart from other rewards, then tasks and models."""

Entry = dict[str, Any]


def entries(kind: str | None = None) -> list[Entry]:
    """Every part, task and model, by kind and name; with `kind`, one of ORDER, only those.

    Each has kind, slot, name, about, doc, settings (name, default, values, required), path, line, and used_by: the methods whose
    files import it. A part of one method's own file is named METHOD/PART. Raises RewardlabError for an unknown kind.
    """
    if kind is not None and kind not in ORDER:
        raise unknown("slot", kind, ORDER)
    uses = read_each("uses", methods().values(), imports_in)
    found = [*_shared(uses), *_of_methods(), *_tasks(), *_models()]
    chosen = [entry for entry in found if kind in (None, entry["kind"])]
    return sorted(chosen, key=lambda entry: (ORDER.index(entry["kind"]), "/" in entry["name"], entry["name"]))


def named(name: str) -> list[Entry]:
    """The entries of this name: one, or several of different kinds (`sql` is a verifier and a task).

    A part of one method's file is found without the method too, as a reward formula may call it (`with_majority`).
    """
    everything = entries()
    found = [entry for entry in everything if name in (entry["name"], f"{entry['slot']}:{entry['name']}")]
    if not found and name not in methods():
        found = [entry for entry in everything if entry["name"].rpartition("/")[2] == name]
    if not found and name in methods():
        raise RewardlabError(f"{name} is a method: rewardlab show {name}")
    if not found:
        raise unknown("slot or part", name, {*ORDER, *(entry["name"] for entry in everything)})
    return found


def _shared(uses: Mapping[Path, list[str]]) -> list[Entry]:
    users: dict[str, list[str]] = {}
    for path, imported in uses.items():
        for name in imported:
            users.setdefault(name, []).append(path.stem)
    return [
        _entry(path, definition, used_by=users.get(f"{_module(path)}:{definition.name}", []))
        for path, definition in shared_definitions()
    ]


def _of_methods() -> list[Entry]:
    found = read_each("own-parts", methods().values(), parts_in)
    return [
        _entry(path, definition, f"{path.stem}/{definition.name}", used_by=[path.stem])
        for path, definitions in found.items()
        for definition in (Definition(*values) for values in definitions)
    ]


def _tasks() -> list[Entry]:
    # records are the problems in a file of one's own, which a task's name stands for
    return [_entry(path, function_in(path, name, "task")) for name, path in task_files().items() if name != "records"]


def _models() -> list[Entry]:
    path = PACKAGE / "models" / "checkpoint.py"
    return [_entry(path, Definition("model", name, about, [], 1)) for name, about in literal_in(path, "NAMES").items()]


def _entry(path: Path, definition: Definition, name: str = "", used_by: list[str] | None = None) -> Entry:
    settings = [
        {"name": key, "default": default, "values": values_of(annotation), "required": default is None}
        for key, annotation, default in definition.settings
    ]
    return {
        "kind": definition.kind, "slot": definition.slot, "name": name or definition.name, "about": definition.about,
        "doc": definition.doc, "settings": settings, "path": str(path), "line": definition.line, "used_by": sorted(used_by or []),
    }  # fmt: skip


def _module(path: Path) -> str:
    return ".".join(("rewardlab", *path.relative_to(PACKAGE).with_suffix("").parts))
