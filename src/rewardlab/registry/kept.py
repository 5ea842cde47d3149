"""Cache what is read from files, until the files change.

Names, docstrings and claims are read from syntax trees, at a millisecond a file. What was read is kept in the user's cache
folder under each file's time stamp and size, so that `rewardlab list` answers at once with hundreds of methods. The cache may be
deleted at any time, and it need not be writable.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from rewardlab.util.files import cache, write_text

SETTLED = 2_000_000_000
"""Nanoseconds after which a file's time stamp tells its versions apart: some file systems count in whole seconds."""

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


def stamp_of(path: Path) -> Stamp:
    """When a file was last changed, in nanoseconds, and its size."""
    status = path.stat()
    return [status.st_mtime_ns, status.st_size]


def _load(kind: str, reader: Stamp) -> dict[str, Any]:
    try:
        cached = json.loads(_store(kind).read_text("utf-8"))
        return cached["files"] if cached["reader"] == reader else {}
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        # no cache yet, or one written by another version
        return {}


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
