"""Writing that is never half done."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_LEFT = re.compile(r"\..+\.\d+\.(tmp|old)")


def write_text(path: Path, text: str) -> None:
    """Replace a file as a whole."""
    with new_file(path) as new:
        new.write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False))


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Write a temporary file, then put it in place of `path` at once; on any error nothing is left of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a temporary folder, then put it in place of `path` at once; on any error nothing is left of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        yield temporary
        for entry in (*temporary.rglob("*"), temporary):
            _sync(entry)
        if path.exists():
            gone = path.with_name(f".{path.name}.{os.getpid()}.old")
            os.replace(path, gone)
            os.replace(temporary, path)
            shutil.rmtree(gone, ignore_errors=True)
        else:
            os.replace(temporary, path)
        _sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove what killed writers left in a folder. Nobody else may be writing there."""
    for entry in folder.glob(".*"):
        if _LEFT.fullmatch(entry.name):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def cache() -> Path:
    """$REWARDLAB_CACHE, or rewardlab in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("REWARDLAB_CACHE") or Path(home) / "rewardlab")


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of this name in the cache; `make(folder)` fills it the first time, in one process at a time."""
    folder = cache() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(cache() / f".{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with new_folder(folder) as new:
                make(new)
    return folder
