"""The folder of a run: choosing a new one, the state of an earlier one, and resuming after a failure."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shlex import quote
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.runs.config import IN_PYTHON
from rewardlab.runs.lock import locked
from rewardlab.runs.metrics import read_metrics
from rewardlab.runs.named import read_config
from rewardlab.util.files import disk_errors
from rewardlab.util.progress import console
from rewardlab.util.ranks import is_first

WRITTEN = (
    *(
        "best",
        "model",
        "models",
        "checkpoints",
        "rollouts",
        "tensorboard",
        "metrics.jsonl",
        "track.json",
        "summary.json",
        "report.html",
    ),
    # last: a run that is cut off in between is still one that trained nothing
    "config.json",
)
"""What a run writes into its folder."""
LOGS = (".log", ".txt", ".out", ".err")
"""Endings of files into which a shell or a scheduler writes what a command prints; they are there before the command begins."""
SHOWN = 3
"""Names that a message lists."""


@contextlib.contextmanager
def new_run_folder(out: Path | str | None, name: str) -> Iterator[Path]:
    """The locked folder of a new run: `out`, or the first of runs/NAME, runs/NAME-2, ... that does not exist.

    It is removed again if nothing is written. Raises RewardlabError if `out` holds a run that has trained, or files that are of no
    run, or is in use, or cannot be written to.
    """
    with contextlib.ExitStack() as stack:
        with disk_errors(out or "runs"):
            if out is not None:
                # before the lock is made, which is a file in it
                _check_empty(Path(out))
            folder = first_free(Path("runs"), name) if out is None else Path(out)
            # called after the lock is gone, which is a file in it
            stack.callback(_remove_if_empty, folder)
            stack.enter_context(locked(folder, instead=", or choose another folder (--out, in Python out=)"))
            _make_free(folder)
        yield folder


def first_free(parent: Path, name: str) -> Path:
    """The first of NAME, NAME-2, ... that does not exist in a folder, as a new folder."""
    parent.mkdir(parents=True, exist_ok=True)
    for i in range(1, 10_000):
        folder = parent / (name if i == 1 else f"{name}-{i}")
        # made, and not only looked for: another process may be choosing in the same moment
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise RewardlabError(f"{parent} holds 10,000 runs named {name}; choose another folder (--out, in Python out=)")


def _remove_if_empty(folder: Path) -> None:
    # rmdir removes empty folders only: once something is written, the folder stays
    with contextlib.suppress(OSError):
        folder.rmdir()


def check_new_folder(out: Path | str | None) -> None:
    """Raise RewardlabError where `new_run_folder` would for a folder that is named; nothing is made or taken away."""
    if out is None:
        return
    with disk_errors(out):
        _check_free(Path(out))
        whole = Path(out).absolute()
        there = next(path for path in (whole, *whole.parents) if path.exists())
        if not there.is_dir():
            number = errno.EEXIST if there == whole else errno.ENOTDIR
            raise OSError(number, os.strerror(number), str(there))
        # permissions alone do not tell: a file system may be read-only, or one such as /proc
        with tempfile.TemporaryDirectory(dir=there, prefix=".rewardlab-"):
            pass


def _check_free(folder: Path) -> None:
    """Raise RewardlabError for a folder that holds a run which has trained, or anything that no run has written."""
    if not (folder / "config.json").exists():
        return _check_empty(folder)
    read_config(folder)
    done = steps_done(folder)
    if (folder / "summary.json").exists():
        raise RewardlabError(
            f"{folder} already holds a run, which is finished; choose another folder (--out, in Python out=), or extend the run "
            f"with rewardlab train --resume {quote(str(folder))} --steps N (in Python: rewardlab.resume({str(folder)!r}, steps=N))"
        )
    if done or (folder / "model").exists() or (folder / "trl").exists():
        raise RewardlabError(
            f"{folder} already holds a run of {done} steps; resume it with rewardlab train --resume {quote(str(folder))} "
            f"(in Python: rewardlab.resume({str(folder)!r})), or choose another folder (--out, in Python out=)"
        )


def _check_empty(folder: Path) -> None:
    """Raise RewardlabError for a folder of no run whose files a new one would overwrite, or be mixed up with.

    Not counted are hidden files, such as the lock of a run that was killed before it began, and what a shell redirects into the
    folder: it makes `> runs/x/log.txt` before the command begins.
    """
    if not folder.is_dir() or (folder / "config.json").exists():
        return
    found = sorted(path.name for path in folder.iterdir() if not _is_beside(path))
    if found:
        more = f" and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
        raise RewardlabError(
            f"{folder} is not empty, and holds no run: there is {', '.join(found[:SHOWN])}{more}, which a run would overwrite or "
            "be mixed up with; choose a new or empty folder (--out, in Python out=), or move its files away"
        )


def _is_beside(path: Path) -> bool:
    """Whether this may lie in the folder of a run before it begins."""
    return path.name.startswith(".") or (path.suffix in LOGS and path.is_file())


def _make_free(folder: Path) -> None:
    """Take away what a run has left that never finished a step, so that its folder can be used again; refuse any other one."""
    # once more, now that no other process can begin a run there
    _check_free(folder)
    if not (folder / "config.json").exists():
        return
    method = read_config(folder).get("method")
    console.print(f"{folder} held a run of {method} that had trained no step: it is started anew", markup=False)
    for name in WRITTEN:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def steps_done(folder: Path) -> int:
    """The steps that a run has finished, by its log or its checkpoints, whichever knows more."""
    logged = [line["step"] for line in read_metrics(folder)]
    return max([0, *logged, *checkpointed(folder)])


def checkpointed(folder: Path) -> list[int]:
    """The steps of a run's checkpoints, oldest first."""
    return sorted(int(path.name.removeprefix("step-")) for path in (folder / "checkpoints").glob("step-*"))


@contextlib.contextmanager
def saying_how_to_resume(folder: Path) -> Iterator[None]:
    """A context that adds to an error how to resume the run, as a note, which a traceback and the command line show."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as problem:
        # without a config.json there is no run yet; of several processes only the first knows what it has saved
        if is_first() and (folder / "config.json").exists():
            problem.add_note(how_to_resume(folder, stopped=isinstance(problem, KeyboardInterrupt)))
        raise


def how_to_resume(folder: Path, stopped: bool) -> str:
    """What is saved of an unfinished run, and how it is resumed.  stopped: on purpose, so that nothing needs mending.

    One that failed before its first step is begun again: resumed, it would have the settings that it failed with.
    """
    document: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    if not stopped and not steps_done(folder):
        return "no step is done yet: once that is mended, give the same command again"
    saved = max(checkpointed(folder), default=0)
    done = f"the run is saved up to step {saved}" if saved else "no step is saved yet"
    if document.get("engine") == "trl":
        return f"a run through TRL cannot be resumed; what it wrote is in {folder}"
    made = {"task": not document.get("source"), "model": document.get("model") == IN_PYTHON}
    made["reward"] = '"reward:from_python"' in json.dumps(document.get("recipe"))
    objects = "".join(f", {name}=..." for name in made if made[name])
    call = f"rewardlab.resume({str(folder)!r}{objects})" if objects else f"rewardlab train --resume {quote(str(folder))}"
    # code is what is mended: rows and corpora were read to their ends
    files = " or ".join(Path(path).name for path in document.get("files", {}) if path.endswith(".py"))
    # a run that was stopped on purpose needs no mending
    flag = "reward_changed=True" if objects else "--reward-changed"
    after = f" (if you edit {files}: with {flag})" if files and not stopped else ""
    return f"{done}; resume with: {call}{after}"
