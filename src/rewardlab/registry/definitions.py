"""What a file defines, read from its syntax tree: parts, and the settings that functions take. No file is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.core.domain import ANNOTATIONS, one_of, setting_of

SLOT_OF_DECORATOR = {"verifier": "reward", "operator": "reward"}
SLOT_OF_DECORATOR |= {
    slot: slot
    for slot in ("reward", "environment", "rollout", "credit", "objective", "weighting", "select", "measure", "loop", "study")
}


class Definition(NamedTuple):
    """A function in a file, as a cache can hold it.

    kind: the decorator that makes it a part, such as "credit" or "verifier", or "task".  settings: (name, annotation, default) of
    its keyword-only arguments as they are written, None where there is none.  line: of its `def`.
    """

    kind: str
    name: str
    doc: str
    settings: list[tuple[str, str | None, str | None]]
    line: int

    @property
    def slot(self) -> str:
        return SLOT_OF_DECORATOR.get(self.kind, self.kind)

    @property
    def about(self) -> str:
        """The first sentence of the docstring, which may go over several lines."""
        return " ".join(self.doc.split("\n\n")[0].split())


def parts_in(path: Path) -> list[Definition]:
    """The parts that a file defines."""
    return [define(kind, node) for node in _functions(path) for kind in _decorators(node)]


def function_in(path: Path, name: str, kind: str) -> Definition:
    """The function of this name, which a file defines without a decorator."""
    return next(define(kind, node) for node in _functions(path) if node.name == name)


def class_fields_in(path: Path, name: str) -> list[str]:
    """The annotated names in the body of a class."""
    body = ast.parse(path.read_text("utf-8"), str(path)).body
    found = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == name)
    return [n.target.id for n in found.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]


def define(kind: str, node: ast.FunctionDef) -> Definition:
    defaults = [None if default is None else ast.unparse(default) for default in node.args.kw_defaults]
    annotations = [None if arg.annotation is None else ast.unparse(arg.annotation) for arg in node.args.kwonlyargs]
    names = [arg.arg for arg in node.args.kwonlyargs]
    settings = list(zip(names, annotations, defaults, strict=True))
    return Definition(kind, node.name, ast.get_docstring(node) or "", settings, node.lineno)


def values_of(annotation: str | None) -> str:
    """Which values an annotation allows, in words; the annotation itself if it is no domain."""
    written, _, none = (annotation or "").partition(" | ")
    if none in ("", "None") and written.startswith("Literal["):
        choices = ast.literal_eval(f"({written[len('Literal[') : -1]},)")
        return one_of(*map(str, choices)).says + (", or none" if none else "")
    if none in ("", "None") and written in ANNOTATIONS:
        setting = setting_of(ANNOTATIONS[written])
        assert setting.domain is not None  # each of ANNOTATIONS has one
        return setting.domain.says + (", or none" if none else "")
    return annotation or "any value"


def imports_in(path: Path) -> list[str]:
    """What a file imports from rewardlab by name, as "module:name"."""
    nodes = (node for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))) if isinstance(node, ast.ImportFrom))
    return [f"{node.module}:{alias.name}" for node in nodes if (node.module or "").startswith("rewardlab.") for alias in node.names]


def literal_in(path: Path, name: str) -> Any:
    """The value of an assignment at the top of a file."""
    body = ast.parse(path.read_text("utf-8"), str(path)).body
    nodes = (node for node in body if isinstance(node, ast.Assign))
    return next(ast.literal_eval(node.value) for node in nodes if isinstance(t := node.targets[0], ast.Name) and t.id == name)


def _functions(path: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.parse(path.read_text("utf-8"), str(path)).body if isinstance(node, ast.FunctionDef))


def _decorators(node: ast.FunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Name) and called.id in SLOT_OF_DECORATOR:
            yield called.id
