"""The name under which a small policy is cached: a hash of everything that decides how it comes out."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rewardlab import registry

PACKAGE = Path(__file__).parents[1]
FOLLOWED = ("tasks", "text", "verifiers")
"""Rooms whose code decides which problems and demonstrations a policy is warmed up on."""


def fingerprint(tasks: Iterable[str], makers: Iterable[str], told: Any = None) -> str:
    """Changes whenever a policy would come out different.

    It covers the code of its tasks and of all that they import from the rooms FOLLOWED, however it is imported; its makers (paths
    in the package); and what else is `told`. Comments, docstrings and layout do not count.
    """
    starts = {registry.task_files()[task] for task in tasks}
    files = {PACKAGE / maker for maker in makers} | _reached(starts)
    code = "".join(f"{path.relative_to(PACKAGE)}\n{_code(path)}\n" for path in sorted(files))
    return hashlib.blake2b((code + repr(told)).encode(), digest_size=6).hexdigest()


def _reached(starts: Iterable[Path]) -> set[Path]:
    """Files that these import, directly or through others, within the rooms FOLLOWED."""
    found: set[Path] = set()
    waiting = list(starts)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imports(path)
    return found


def _imports(path: Path) -> Iterator[Path]:
    package = ("rewardlab", *path.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join((*above, *filter(None, [node.module])))
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.startswith(tuple(f"rewardlab.{room}" for room in FOLLOWED)):
                yield from _files_of(name)


def _files_of(module: str) -> Iterator[Path]:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    yield from (candidate for candidate in candidates if candidate.is_file())


@functools.cache
def _code(path: Path) -> str:
    """The syntax of a file without its docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:]
    return ast.dump(tree)
