"""The cache key of a small policy: a hash of everything that its training depends on."""

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
"""Folders whose code decides which problems and demonstrations a policy is warmed up on."""


def fingerprint(tasks: Iterable[str], makers: Iterable[str], settings: Any = None) -> str:
    """A hash that changes whenever the trained policy would.

    It covers the code of the tasks and of everything they import, directly or not, from the folders FOLLOWED; the makers (paths in
    the package of the modules that train the policy); and `settings`. Comments, docstrings and layout do not count.
    """
    starts = {registry.task_files()[task] for task in tasks}
    return hash_of({PACKAGE / maker for maker in makers} | reached(starts), settings)


def hash_of(files: Iterable[Path], settings: Any = None) -> str:
    """The hash of what these files say, and of `settings`."""
    code = "".join(f"{_place(path)}\n{_code(path)}\n" for path in sorted(files))
    return hashlib.blake2b((code + repr(settings)).encode(), digest_size=6).hexdigest()


def _place(path: Path) -> Path:
    """Where a file is in the package: the same on every machine. Files from outside are named by their folder and name."""
    return path.relative_to(PACKAGE) if PACKAGE in path.parents else Path(*path.parts[-2:])


def reached(starts: Iterable[Path], followed: Iterable[str] = FOLLOWED) -> set[Path]:
    """These files and all that they import, directly or indirectly, from the folders `followed` of the package."""
    prefixes = tuple(f"rewardlab.{folder}" if folder else "rewardlab" for folder in followed)
    reached: set[Path] = set()
    queue = list(starts)
    while queue:
        path = queue.pop()
        if path not in reached:
            reached.add(path)
            queue += _imports(path, prefixes)
    return reached


@functools.cache
def _imports(path: Path, prefixes: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(_imported(path, prefixes))


def _imported(path: Path, prefixes: tuple[str, ...]) -> Iterator[Path]:
    package = ("rewardlab", *path.relative_to(PACKAGE).parts[:-1]) if PACKAGE in path.parents else ("rewardlab",)
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # one dot is the file's own package, each further dot one level up
            above = package[: len(package) + 1 - node.level] if node.level else ()
            base = ".".join((*above, *filter(None, [node.module])))
            # an imported name may be a module or a part of one: `_files_of` drops those that are not files
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.startswith(prefixes):
                yield from _files_of(name)


def _files_of(module: str) -> Iterator[Path]:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    yield from (candidate for candidate in candidates if candidate.is_file())


@functools.cache
def _code(path: Path) -> str:
    """The syntax tree of a file as text, without docstrings, and without the claim that a method's file makes."""
    tree = ast.parse(path.read_text("utf-8"))
    tree.body = [node for node in tree.body if not _is_claim(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node):
            # the docstring is the first statement; comments and layout are not in the tree at all
            node.body = node.body[1:]
    return ast.dump(tree)


def _is_claim(node: ast.stmt) -> bool:
    """Whether a statement is `claim = Claim(...)`: what is claimed of a method decides nothing that it computes."""
    return isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "Claim"
