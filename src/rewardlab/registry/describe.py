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
import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.data.columns import Data
from rewardlab.registry.bases import builds_on

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
