"""The lock of a run folder: one process at a time writes there.

`.lock` is locked by the operating system (flock) for the process that trains, so a process that is killed leaves nothing to clean
up. Its text says who holds it. Where the file system has no locks, that text alone decides.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

NAME = ".lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)
"""What flock() answers where the file system has no locks: some network file systems."""

_held: set[int] = set()
"""Descriptors of the locks that this process holds."""


@contextmanager
def locked(folder: Path, instead: str = "") -> Iterator[None]:
    """Keep a run folder, which is made if need be, for this process and this call.

    Raises RewardlabError that names the holder while another process, or another call in this one, has it.
    instead: what to do other than waiting, at the end of that message.
    """
    descriptor, owner = _acquire(folder, instead), os.getpid()
    _held.add(descriptor)
    try:
        yield
    finally:
        # a process forked from this one may come by here too; the lock is not its own
        if os.getpid() == owner:
            with suppress(OSError):
                # removed while still held: after that, another process could hold it already
                if _is_at(descriptor, folder / NAME):
                    (folder / NAME).unlink()
            _held.discard(descriptor)
            os.close(descriptor)


def _acquire(folder: Path, instead: str) -> int:
    """A descriptor of the folder's lock, locked for us."""
    path = folder / NAME
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            if folder.is_dir():
                raise
            # a run that failed in the same moment has removed its empty folder
            continue
        try:
            _lock(descriptor, path, instead)
            # the holder before us may have removed the file between our opening it and locking it
            if _is_at(descriptor, path):
                _sign(descriptor)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, path: Path, instead: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RewardlabError(_in_use(path, _holder(descriptor)) + instead) from None
    except OSError as e:
        if e.errno not in NO_LOCKS:
            raise
        holder = _holder(descriptor)
        if holder and _may_run(holder):
            gone = f"; if that process is gone, delete {path}"
            raise RewardlabError(_in_use(path, holder) + instead + gone) from None


def _in_use(path: Path, holder: dict[str, Any]) -> str:
    where = f"{path.parent} is in use:"
    if not holder:
        return f"{where} another process trains there. Wait for it"
    if (holder["pid"], holder["host"]) == (os.getpid(), socket.gethostname()):
        return f"{where} this process trains there already, since {holder['since']}. Wait for that"
    who = f"process {holder['pid']} on {holder['host']} trains there since {holder['since']}"
    return f"{where} {who}. Wait for it, or stop it with kill {holder['pid']}, which saves it first"


def _may_run(holder: dict[str, Any]) -> bool:
    """Whether the process may still be there. Of one on another host nothing is known."""
    if holder["host"] != socket.gethostname():
        return True
    try:
        os.kill(holder["pid"], 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # it is there, and belongs to another user
        pass
    return True


def _holder(descriptor: int) -> dict[str, Any]:
    """Who holds the lock; {} if that is not written yet, or was cut short."""
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
        return {"pid": int(holder["pid"]), "host": str(holder["host"]), "since": str(holder["since"])}
    except (ValueError, KeyError, TypeError):
        return {}


def _sign(descriptor: int) -> None:
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(holder).encode(), 0)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether this open file is still the one at `path`."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _let_go() -> None:
    """In a forked process: close what it inherited, or a lock would outlive the process that holds it."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
