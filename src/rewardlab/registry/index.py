"""What a file defines, read from its syntax tree: parts, and the settings that functions take. No file is imported."""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.registry.find import SETTLED
from rewardlab.settings.domain import ANNOTATIONS, one_of, setting_of
from rewardlab.util.files import cache, write_text

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
    nodes = (node for top in _body(path) for node in ast.walk(top) if isinstance(node, ast.ImportFrom))
    return [f"{node.module}:{alias.name}" for node in nodes if (node.module or "").startswith("rewardlab.") for alias in node.names]


def literal_in(path: Path, name: str) -> Any:
    """The value of an assignment at the top of a file."""
    body = ast.parse(path.read_text("utf-8"), str(path)).body
    nodes = (node for node in body if isinstance(node, ast.Assign))
    return next(ast.literal_eval(node.value) for node in nodes if isinstance(t := node.targets[0], ast.Name) and t.id == name)


def _functions(path: Path) -> Iterator[ast.FunctionDef]:
    return (node for node in _body(path) if isinstance(node, ast.FunctionDef))


def _body(path: Path) -> list[ast.stmt]:
    """The statements of a file. One that cannot be read, as a user's unfinished method, has none: whoever names it is told why."""
    try:
        return ast.parse(path.read_text("utf-8"), str(path)).body
    except (SyntaxError, ValueError):
        return []


def _decorators(node: ast.FunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Name) and called.id in SLOT_OF_DECORATOR:
            yield called.id


# ---- Cache what is read from files, until the files change -----------------------------------------------------------
#
# Names, docstrings and claims are read from syntax trees, at a millisecond a file. What was read is kept in the user's cache
# folder under each file's time stamp and size, so that `rewardlab list` answers at once with hundreds of methods. The cache may
# be deleted at any time, and it need not be writable.

Stamp = list[int]


def read_each(kind: str, paths: Iterable[Path], read: Callable[[Path], Any]) -> dict[Path, Any]:
    """`read(path)` of each file, taken from the cache where the file has not changed since.

    kind: the name under which results are kept.  read: returns what JSON can hold; a change of its own file empties the cache.
    """
    stamps = {path: stamp_of(path) for path in paths}
    reader = stamp_of(Path(read.__code__.co_filename))
    cached = _load(kind, reader)
    values = {path: cached[str(path)][1] for path, stamp in stamps.items() if cached.get(str(path), [None])[0] == stamp}
    missing = [path for path in stamps if path not in values]
    for path in missing:
        values[path] = read(path)
    # a file written just now may change again within one tick of its time stamp: it is not cached yet
    now = time.time_ns()
    settled = {str(path): [stamps[path], values[path]] for path in missing if now - stamps[path][0] > SETTLED}
    if settled:
        _save(kind, reader, cached | settled)
    return {path: values[path] for path in stamps}


def kept_while(files: Sequence[Path], kind: str, asked: str, compute: Callable[[], str]) -> str:
    """`compute()`, taken from the cache while none of these files has changed. kind, asked: the names under which it is kept."""
    stamps = [stamp_of(path) for path in files]
    if time.time_ns() - max(changed for changed, _ in stamps) <= SETTLED:
        return compute()
    folder = _store(kind).with_suffix("") / _digest((sys.version_info[:2], list(map(str, files)), stamps))
    with contextlib.suppress(OSError, RuntimeError):
        return (folder / _digest(asked)).read_text("utf-8")
    found = compute()
    with contextlib.suppress(OSError, RuntimeError):
        if not folder.is_dir():
            # what is kept there is of the files as they were
            shutil.rmtree(folder.parent, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / _digest(asked), found)
    return found


def _digest(what: object) -> str:
    return hashlib.blake2b(repr(what).encode(), digest_size=8).hexdigest()


def stamp_of(path: Path) -> Stamp:
    """When a file was last changed, in nanoseconds, and its size."""
    status = path.stat()
    return [status.st_mtime_ns, status.st_size]


def _load(kind: str, reader: Stamp) -> dict[str, Any]:
    try:
        cached = _read_store(_store(kind), tuple(stamp_of(_store(kind))))
        return cached["files"] if cached["reader"] == reader else {}
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        # no cache yet, or one written by another version
        return {}


@functools.lru_cache(16)
def _read_store(store: Path, stamp: tuple[int, ...]) -> dict[str, Any]:
    """What is kept in a file, read once for each of its versions."""
    return json.loads(store.read_text("utf-8"))


def _save(kind: str, reader: Stamp, files: dict[str, Any]) -> None:
    """Write the cache, less the files that are gone. Where it cannot be written, files are read each time."""
    with contextlib.suppress(OSError, RuntimeError):
        present = {path: value for path, value in files.items() if Path(path).exists()}
        _store(kind).parent.mkdir(parents=True, exist_ok=True)
        write_text(_store(kind), json.dumps({"reader": reader, "files": present}))


def _store(kind: str) -> Path:
    """One file for each checkout, so that two of different versions do not empty each other's cache."""
    checkout = hashlib.blake2b(str(Path(__file__).parent).encode(), digest_size=6).hexdigest()
    return cache() / "registry" / f"{kind}-{checkout}.json"
