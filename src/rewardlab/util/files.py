"""Atomic writes: a reader sees the old file or the new one, never half of it. Disk errors in words. And the cache folder."""

from __future__ import annotations

import difflib
import errno
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

_LEFT_BEHIND = re.compile(r"\.(.+)\.\d+\.(tmp|old)")

PAGES = (".html", ".htm")
"""Endings of HTML pages."""
FULL = {
    errno.ENOSPC: "the disk is full; free some space", errno.EDQUOT: "your disk quota is used up; free some space",
    errno.EFBIG: "the file would be larger than is allowed here; raise the limit (ulimit -f), or choose another place",
}  # fmt: skip
WRONG_PATH = {
    errno.EROFS: "the file system is read-only; choose another place",
    errno.EACCES: "permission denied; choose another place, or get the right to use this one",
    errno.EPERM: "permission denied; choose another place, or get the right to use this one",
    errno.ENOTDIR: "a part of this path is a file, not a folder; choose another place",
    errno.EISDIR: "this is a folder, not a file; choose another name",
    errno.EEXIST: "this exists already; choose another name",
    errno.ENOENT: "there is no such file or folder",
    errno.ENAMETOOLONG: "the name is too long",
}
"""What the system's error numbers mean for the user, and what to do."""


def write_text(path: Path, text: str) -> None:
    """Write a file atomically."""
    with new_file(path) as new:
        new.write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False))


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to, then rename it to `path`. On any error the temporary file is removed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    # made before the writer makes it, to learn which mode a new file has here
    temporary.touch()
    mode = temporary.stat().st_mode & 0o666
    try:
        yield temporary
        _allow(temporary, mode)
        _sync(temporary)
        os.replace(temporary, path)
    finally:
        # after the rename there is nothing left to remove
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Raise RewardlabError unless the file can be written, so that hours of work are not done for nothing."""
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        # a file is replaced by a rename, so that the folder is what has to be written to; permissions alone do not tell
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as e:
        raise RewardlabError(f"cannot write {path}: {(e.strerror or str(e)).lower()}; choose another path") from e


def check_page(path: Path) -> None:
    """Raise RewardlabError unless an HTML page can be written there, which would take the place of no file of another kind."""
    if path.suffix.lower() not in PAGES and path.is_file() and path.stat().st_size:
        raise RewardlabError(f"{path} exists, and would be replaced by an HTML page: choose a name that ends in {PAGES[0]}")
    check_writable(path)


def results_folder(folder: Path, names: Sequence[str], key: str) -> None:
    """Make a folder into which these results go, the first of them a JSON object with such a key.

    Raises RewardlabError where one of the names is taken, and the first is not by an earlier call: they would be overwritten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    taken = [name for name in names if (folder / name).exists()]
    if taken and not _is_object(folder / names[0], key):
        raise RewardlabError(
            f"{folder / taken[0]} exists, and would be overwritten: choose another folder (--out, in Python out=), or move it away"
        )
    check_writable(folder / names[0])


def _is_object(file: Path, key: str) -> bool:
    try:
        document = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and key in document


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill, then rename it to `path`. On any error the temporary folder is removed.

    Raises RewardlabError where the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    mode = temporary.stat().st_mode & 0o666
    try:
        yield temporary
        # on disk before the rename, or a power cut could leave a complete name with empty files
        for entry in (*temporary.rglob("*"), temporary):
            if entry.is_file():
                _allow(entry, mode)
            _sync(entry)
        if path.exists():
            # a folder that is not empty cannot be replaced by a rename: move the old one aside first
            old = path.with_name(f".{path.name}.{os.getpid()}.old")
            os.replace(path, old)
            os.replace(temporary, path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(temporary, path)
        # the rename itself is an entry of the parent folder
        _sync(path.parent)
    except Exception as e:
        # other errors may be of what is read to fill it, and say so themselves
        if reason := full_of(e):
            raise RewardlabError(f"cannot write {path}: {reason}") from e
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def sweep(folder: Path) -> None:
    """Remove the temporary files of killed writers from a folder. No other process may be writing there.

    A folder whose writer was killed when it had moved it aside, and had not yet put another in its place, gets its name again.
    """
    # newest first: of several that were moved aside, the last one is what a reader would have seen
    for entry in sorted(folder.glob(".*"), key=lambda entry: entry.lstat().st_mtime, reverse=True):
        if left := _LEFT_BEHIND.fullmatch(entry.name):
            whole = folder / left[1]
            if left[2] == "old" and entry.is_dir() and not whole.exists():
                os.replace(entry, whole)
            else:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _allow(path: Path, mode: int) -> None:
    """Give a file the mode of any other new file: safetensors writes through a temporary file that only its owner may read."""
    if path.stat().st_mode & 0o777 != mode:
        path.chmod(mode)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors(path: Path | str) -> Iterator[None]:
    """A context for writing `path`: a full disk or an impossible path becomes a RewardlabError that says what to do."""
    try:
        yield
    except Exception as e:
        if reason := reason_of(e):
            raise RewardlabError(f"cannot write {path}: {reason}") from e
        raise


def reason_of(problem: Exception) -> str | None:
    """What an error of the system means, in words; None for an error of another kind."""
    number = getattr(problem, "errno", None)
    return full_of(problem) or (WRONG_PATH.get(number) if number else None)


def full_of(problem: Exception) -> str | None:
    """The same of an error that says that there is no room."""
    number = getattr(problem, "errno", None)
    for full, reason in FULL.items():
        # safetensors and tokenizers (written in Rust) raise errors without errno, as shutil does for many files: their text has it
        if number == full or f"(os error {full})" in str(problem) or f"[Errno {full}]" in str(problem):
            return reason
    return None


def size(n: float) -> str:
    """A number of bytes as people read it: 512 B, 3.4 MiB, 1.2 GiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            break
        n /= 1024
    return f"{n:.0f} B" if unit == "B" else f"{n:.1f} {unit}"


def folders_like(path: Path) -> list[str]:
    """The folders beside a path that does not exist whose names are like its own."""
    beside = [other.name for other in path.parent.iterdir() if other.is_dir()] if path.parent.is_dir() else []
    return [str(path.parent / name) for name in difflib.get_close_matches(path.name, beside, n=3, cutoff=0.5)]


def intended(path: str) -> str:
    """The path that a temporary file or folder would have got: the one that the user knows."""
    folder, name = os.path.split(path)
    temporary = _LEFT_BEHIND.fullmatch(name)
    return os.path.join(folder, temporary[1]) if temporary else path


def cache() -> Path:
    """The cache folder: $REWARDLAB_CACHE, or `rewardlab` in the user's cache folder."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("REWARDLAB_CACHE") or Path(home) / "rewardlab")


def cached(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of this name in the cache. The first call fills it with `make(folder)`, in one process at a time."""
    folder = cache() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(cache() / f".{name}.lock", "w") as lock:
        # a second process waits here and then finds the folder filled; the lock ends with its process
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with new_folder(folder) as new:
                make(new)
    return folder
