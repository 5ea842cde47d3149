"""The description of a method, read from its file's syntax tree: neither the file nor torch is imported.

    title, idea, text, reference    from the docstring
    system       the id of the published system; the file's name unless the file says `system = "..."`, None for a baseline
    kind         "method" unless the file says `kind = "..."`
    baseline     the method it is compared with
    claim        what it promises, in the paper's words: `claim = Claim(says=..., versus=...)`, or `check = Check(...)`
    shows        which of the two it is: "claim" or "check"; None where it makes neither
    sanity       whether that is true by construction
    fidelity     how much of the published method it is: `fidelity = "whole"`, "core" or "reading"; None: not yet read
    left_out     what of the published method it leaves out: `left_out = "..."`

All but a claim are written as literals. A claim whose `says` or `versus` is computed is known to `show` alone.
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import operator
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError, unknown
from rewardlab.registry.bases import builds_on
from rewardlab.registry.find import PACKAGE, file_of, methods, names_in, task_files
from rewardlab.registry.index import Definition, function_in, imports_in, literal_in, parts_in, read_each, values_of
from rewardlab.registry.parts import shared_definitions
from rewardlab.registry.verdicts import INERT, inert, last_of, shown

# ----------------------------------------------------------------------------------------------------------------------
#
# What `rewardlab parts` shows: every part, task and model, as its file describes it. Imports none of them, and no torch.

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


COMPUTED = "computed by the file: see rewardlab show"
"""The claim shown if it cannot be read without importing the file."""
YEAR = re.compile(r"\b(19|20)\d\d\b")
FIDELITIES = {
    "whole": "the published method, all of it",
    "core": "its mechanism, without parts that `left_out` names",
    "reading": "our reading of a text that leaves the formula open, or a small version of it; see `left_out`",
}
"""How much of the published method a file is, and what the words mean."""
LITERALS = ("system", "kind", "baseline", "fidelity", "left_out")
SENTENCE = re.compile(r"(?<=[\d)])\. (?=[A-Z])")


def entry(path: Path) -> dict[str, Any]:
    """What `list` shows of the method in a file, but for its verdict. A file that cannot be read gives an entry that says why."""
    name = path.stem
    try:
        tree = ast.parse(path.read_text("utf-8"), path.name)
        stated = _assignments(tree)
        literals: dict[str, Any] = {key: _literal(key, stated[key]) for key in LITERALS if key in stated}
        shows, put = _put(stated)
        says, versus = _claim(put)
        docstring = read_docstring(ast.get_docstring(tree) or "")
    except (SyntaxError, ValueError) as e:
        said = {"idea": f"cannot be read: {type(e).__name__}: {e}", "system": None, "error": str(e)}
        return dict.fromkeys(("title", "text", "reference", "left_out"), "") | NOTHING | said
    return {
        **docstring,
        "system": literals.get("system", None if path.parent.name == "baselines" else system_of(name)),
        "kind": literals.get("kind", "method"),
        "baseline": baseline(name, literals, versus, builds_on(tree, name)),
        "claim": says,
        "version": _constant(put, "version", 1),
        "shows": shows,
        "sanity": _constant(put, "sanity", False),
        "fidelity": literals.get("fidelity"),
        "left_out": literals.get("left_out", ""),
        "data": Data.of(stated["data"]).to_json() if "data" in stated else None,
    }


NOTHING = {
    "kind": "method", "baseline": None, "claim": None, "version": 1, "shows": None, "sanity": False, "fidelity": None,
    "data": None,
}  # fmt: skip
"""What is known of a file that cannot be read."""


def baseline(name: str, stated: Mapping[str, Any], versus: str | None, builds_on: str | None) -> str | None:
    """The method that a method is compared with: as its file states, else as its claim does, else the one it builds on.

    A claim may set a method against itself under other settings (versus == name); such a claim names no baseline.
    """
    if "baseline" in stated:
        return stated["baseline"]
    return versus if versus and versus != name else builds_on


def system_of(name: str) -> str:
    return name.removeprefix("_").replace("_", "-")


def read_docstring(text: str) -> dict[str, str]:
    """`Title: idea`, then what it does, with its equation, then its source, which a remark may follow."""
    first, *paragraphs = inspect.cleandoc(text).split("\n\n")
    first = " ".join(first.split())
    title, colon, idea = first.partition(": ")
    # the source is the last paragraph with a year; indented ones are equations
    dated = [i for i, paragraph in enumerate(paragraphs) if YEAR.search(paragraph) and not paragraph.startswith(" ")]
    reference = ""
    if dated:
        reference, *remark = SENTENCE.split(" ".join(paragraphs[dated[-1]].split()), maxsplit=1)
        paragraphs[dated[-1] : dated[-1] + 1] = remark
    return {
        "title": title if colon else "",
        "idea": idea if colon else first,
        "text": "\n\n".join(paragraphs),
        "reference": reference.removesuffix("."),
    }


def _assignments(tree: ast.Module) -> dict[str, ast.expr]:
    """Name to value of the assignments at the top of a file."""
    plain = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name)}
    annotated = (n for n in tree.body if isinstance(n, ast.AnnAssign) and n.value)
    return plain | {n.target.id: n.value for n in annotated if isinstance(n.target, ast.Name) and n.value}


def _literal(key: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(f"{key} = {ast.unparse(node)[:80]} must be a literal, to be read without importing the file") from None


def _claim(node: ast.expr | None) -> tuple[str | None, str | None]:
    """What a claim says, and against which method."""
    if node is None or isinstance(node, ast.Constant):
        return None, None
    if not isinstance(node, ast.Call):
        return COMPUTED, None
    written = {k.arg: k.value for k in node.keywords}
    says, versus = (written.get(key) for key in ("says", "versus"))
    match says, versus:
        case ast.Constant(str() as text), ast.Constant(str() | None as method):
            return text, method
    return COMPUTED, None


def _put(stated: Mapping[str, ast.expr]) -> tuple[str | None, ast.expr | None]:
    """Which of a check and a claim a file makes, and its call."""
    made = [(word, stated[word]) for word in ("check", "claim") if word in stated and not isinstance(stated[word], ast.Constant)]
    if len(made) > 1:
        raise ValueError("a file makes a claim or a check, not both")
    return made[0] if made else (None, None)


def _constant(claim: ast.expr | None, name: str, default: Any) -> Any:
    """A field of a claim that is written as a literal; one that is computed counts as the default."""
    written = {k.arg: k.value for k in claim.keywords} if isinstance(claim, ast.Call) else {}
    match written.get(name):
        case ast.Constant(value):
            return value
    return default


# ----------------------------------------------------------------------------------------------------------------------
#
# What `rewardlab list` shows: a row for each method, read from files and results. Imports no method and no torch.

NOT_RUN, UNREADABLE = "not run", "unreadable"
SHIPPED = PACKAGE / "results"
"""The results that come with the package."""


def rows(folder: str | None = None) -> list[dict[str, Any]]:
    """Each method's name, folder, path, entry (see `describe`) and the verdict on its claim, by folder and name."""
    return _rows([path for path in methods().values() if folder in (None, path.parent.name)])


def row(name: str) -> dict[str, Any]:
    """The row of one method."""
    return _rows([file_of(name)])[0]


def data_of(name: str) -> Data | None:
    """The rows that a method or a stack reads, as its files state them; None where none does."""
    stated = [Data.from_json(found) for part in names_in(name) if (found := row(part)["data"])]
    return functools.reduce(operator.or_, stated) if stated else None


def repository() -> Path | None:
    """The checkout this package is run from, None if it was installed as a package."""
    root = PACKAGE.parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def results_folder(path: Path) -> Path:
    """Where the results of the method in this file are written: $REWARDLAB_RESULTS, else by where the method is.

    A method of the package, in a checkout: the folder that ships with the package; installed: results/ in the working folder. A
    method from outside (REWARDLAB_METHODS): results/ beside its file.
    """
    if chosen := os.environ.get("REWARDLAB_RESULTS"):
        return Path(chosen).resolve()
    if PACKAGE not in path.parents:
        return path.parent / "results"
    return SHIPPED if repository() else Path.cwd() / "results"


def record_of(path: Path) -> Path | None:
    """The file with the results of the method in this file: of runs on this machine, else those that came with it."""
    came_with_it = SHIPPED if PACKAGE in path.parents else path.parent / "results"
    files = (folder / f"{path.stem}.json" for folder in (results_folder(path), came_with_it))
    return next((file for file in files if file.is_file()), None)


def verdicts_of(path: Path) -> dict[str, Any]:
    """Of the last run in a results file: the version of the claim that it is on, and its verdict in every reading of the file: for
    a claim and for a check, which are by construction or not.
    """
    try:
        last = last_of(json.loads(path.read_text("utf-8")))
        words = {_reading(check, sanity): shown(last, check, sanity) for check in (False, True) for sanity in (False, True)}
        return {"version": last.get("claim", {}).get("version", 1), "inert": inert(last), **words}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return {}


def _reading(check: bool, sanity: bool) -> str:
    return f"{'check' if check else 'claim'}{' by construction' if sanity else ''}"


def _rows(paths: list[Path]) -> list[dict[str, Any]]:
    entries = read_each("methods", paths, entry)
    records = {path: record for path in paths if (record := record_of(path))}
    verdicts = read_each("words", records.values(), verdicts_of)
    table = [
        {
            "name": path.stem,
            "folder": path.parent.name,
            **entries[path],
            "verdict": _verdict(verdicts[records[path]], entries[path]) if path in records else NOT_RUN,
            "path": str(path),
            "record": str(records[path]) if path in records else None,
        }
        for path in paths
    ]
    return sorted(table, key=lambda row: (row["folder"], row["name"]))


def _verdict(found: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """The verdict as it counts for what the method says now: one on an earlier version says nothing about it."""
    if not found:
        return UNREADABLE
    if found["version"] != entry["version"]:
        return NOT_RUN
    word = found[_reading(entry["shows"] == "check", entry["sanity"])]
    return f"{word}, {INERT}" if found["inert"] else word
