"""Files as definitions and imports: where what a name stands for is defined. Files are read, not imported."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rewardlab.registry.find import PACKAGE

Key = tuple[Path, str]
"""A definition: its file, and its name there."""


@dataclass
class Module:
    """A file as definitions: name to its statements, and name to (file, name there; None for the file itself) of what it imports.

    outside: imported name to its full name, of what other packages define.
    """

    own: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[Path, str | None]] = field(default_factory=dict)
    outside: dict[str, str] = field(default_factory=dict)


@functools.cache
def module(path: Path) -> Module:
    """The definitions and imports of a file."""
    read = Module()
    for node in _statements(ast.parse(path.read_text("utf-8"), str(path)).body):
        if isinstance(node, ast.Import | ast.ImportFrom):
            note_imports(read, node, path)
        else:
            for name in _defined(node):
                read.own.setdefault(name, []).append(node)
    return read


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a file, those under its conditions too (TYPE_CHECKING, optional imports)."""
    for node in body:
        if isinstance(node, ast.If | ast.Try | ast.With):
            yield from _statements(node.body)
            yield from _statements(getattr(node, "orelse", []))
            yield from _statements(statement for handler in getattr(node, "handlers", []) for statement in handler.body)
        else:
            yield node


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def note_imports(read: Module, node: ast.Import | ast.ImportFrom, path: Path) -> None:
    package = path.relative_to(PACKAGE.parent).parts[:-1] if PACKAGE in path.parents else ("",)
    level = node.level if isinstance(node, ast.ImportFrom) else 0
    above = package[: len(package) + 1 - level] if level else ()
    base = ".".join((*above, *filter(None, [getattr(node, "module", None)])))
    for alias in node.names:
        whole = f"{base}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        name = alias.asname or (alias.name if isinstance(node, ast.ImportFrom) else alias.name.partition(".")[0])
        if found := _found(whole):
            read.imports[name] = found
        elif isinstance(node, ast.Import) and not alias.asname:
            read.outside[name] = name
        else:
            read.outside[name] = whole


def _found(whole: str) -> tuple[Path, str | None] | None:
    """The file of a module of the package, or the file and the name in it, that an import stands for."""
    if whole.partition(".")[0] != PACKAGE.name:
        return None
    if file := _file(whole):
        return file, None
    above, _, name = whole.rpartition(".")
    file = _file(above)
    return (file, name) if file else None


def _file(name: str) -> Path | None:
    place = PACKAGE.parent.joinpath(*name.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def origin_of(path: Path, name: str) -> Key | None:
    """The definition that a name of a file stands for, through re-exports; None for what other packages define."""
    for _ in range(20):
        read = module(path)
        if name in read.own:
            return path, name
        if name not in read.imports:
            # `from . import results`: the name of a file in the folder of an __init__
            return None
        path, inner = read.imports[name]
        if inner is None:
            return path, ""
        name = inner
    return None
