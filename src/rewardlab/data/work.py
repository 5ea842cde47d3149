"""Batched work on a file that a killed process resumes.

Its first line holds the settings; each further line a batch, with a key that says of what. A line is written whole and synced
before the next batch is begun; half a line, left by a power cut, counts as none.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any

from rewardlab.errors import RewardlabError


class Work:
    """The batches that are done, by key, and the file to which further ones are added."""

    def __init__(self, file: IO[bytes], done: dict[str, Any]):
        self.file, self.done = file, done

    def add(self, key: str, result: Any) -> None:
        self.file.write(_line({"key": key, "result": result}))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.done[key] = result


def key_of(*what: Any) -> str:
    """A key that depends on plain data alone."""
    return hashlib.blake2b(json.dumps(what, default=str).encode(), digest_size=12).hexdigest()


@contextmanager
def work_file(path: Path, settings: Mapping[str, Any]) -> Iterator[Work]:
    """Open a file of work, and remove it when all is done; on an error it stays.

    Raises RewardlabError if it was begun with other settings, or another process is at it.
    """
    with open(path, "ab+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            raise RewardlabError(f"another process is writing {path}: wait for it, or give another --out") from e
        file.seek(0)
        whole = [line for line in file if line.endswith(b"\n")]
        # the next line must not follow half of one
        file.truncate(sum(map(len, whole)))
        if whole:
            _check(path, json.loads(whole[0]), settings)
        else:
            file.write(_line(settings))
        done = {line["key"]: line["result"] for line in map(json.loads, whole[1:])}
        try:
            yield Work(file, done)
        except BaseException as e:
            if done:
                e.add_note(f"what is done is kept in {path}: the same command resumes from there")
            raise
        path.unlink()


def _line(data: Any) -> bytes:
    return json.dumps(data, default=str).encode() + b"\n"


def _check(path: Path, was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    now = json.loads(_line(now))
    if changed := [name for name in {**was, **now} if was.get(name) != now.get(name)]:
        said = ", ".join(f"{name} {was.get(name)!r}, now {now.get(name)!r}" for name in changed)
        raise RewardlabError(f"{path} was begun with other settings ({said}): give those, or remove it to begin anew")


def work_beside(out: Path | str, settings: Mapping[str, Any]) -> AbstractContextManager[Work]:
    """The work on a file that is to be written, which is kept beside it as OUT.work."""
    return work_file(Path(out).resolve().with_name(f"{Path(out).name}.work"), settings)
