"""The record of every `reproduce`: NAME.json in `results_folder`. Runs are appended, never removed: none can be selected."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import math
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.checks.claim import Check, Claim, Within
from rewardlab.checks.verdict import INCOMPLETE
from rewardlab.checks.workers import cores
from rewardlab.core import Part
from rewardlab.errors import RewardlabError
from rewardlab.registry import catalogue
from rewardlab.registry import code as reaching
from rewardlab.registry.definitions import references
from rewardlab.settings.old_names import with_first_names
from rewardlab.util.files import check_writable, write_json

Record = dict[str, Any]

DECIDING = (
    "methods", "rewards", "verifiers", "tasks", "worlds", "envs", "rollouts", "credit", "objectives", "evals", "text",
    "data", "policies", "prm",
)  # fmt: skip
"""Rooms whose definitions decide what a method computes."""
MACHINERY = (
    "reward.py",
    "scores.py",
    "calling.py",
    "returned.py",
    "call_timeout.py",
    "operator.py",
    "functions.py",
    "conventions.py",
    "external.py",
)
"""Files of the reward slot by which every reward is called."""
AFTERWARDS = ("finding", "sanity")
"""What is said of a claim once it has been run: what was learnt, and that it holds by construction."""


def folder_for(name: str) -> Path:
    """The folder of the record of a method."""
    return catalogue.results_folder(registry.file_of(name))


def read(name: str, where: Path) -> Record | None:
    """The record of a method, None if there is none. Raises RewardlabError for a file that is not a record."""
    path = where / f"{name}.json"
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text("utf-8"))
        # what every reader needs; if it is missing, the file is refused here and not somewhere later
        record["runs"][-1]["verdict"]
    except (ValueError, KeyError, IndexError, TypeError) as e:
        raise RewardlabError(f"{path} is not a record of results ({type(e).__name__}: {e}); restore it from version control") from e
    return record


def append(name: str, claim: Record, run: Record, where: Path) -> Path:
    """Add a run to the record of a method. Safe while other processes append, and the file is always complete."""
    where.mkdir(parents=True, exist_ok=True)
    path = where / f"{name}.json"
    with _locked(where):
        record = read(name, where) or {"runs": []}
        system = catalogue.row(name)["system"]
        write_json(path, {"name": name, "system": system, "claim": claim, "runs": [*record["runs"], run]})
    return path


def amend(name: str, where: Path, **words: Any) -> None:
    """Add words to the newest run of a record, beside what was measured, which stays as it is."""
    with _locked(where):
        record = read(name, where)
        assert record is not None
        last = record["runs"][-1]
        write_json(where / f"{name}.json", {**record, "runs": [*record["runs"][:-1], {**last, **words}]})


def prepare(name: str, where: Path) -> None:
    """Make the folder of records. Raises RewardlabError if the record of this method cannot be added to."""
    try:
        where.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise RewardlabError(
            f"cannot write results of {name} to {where}: {e.strerror}; set REWARDLAB_RESULTS to another folder"
        ) from e
    check_writable(where / f"{name}.json")
    read(name, where)


def as_record(claim: Claim) -> Record:
    """A claim as JSON."""
    values = {f.name: getattr(claim, f.name) for f in fields(Claim)}
    # through JSON, so that it compares equal with a claim that was read from a file (tuples are lists there)
    return json.loads(json.dumps({k: _plain(v) for k, v in values.items()}, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return value.to_json()
    if isinstance(value, Within):
        # JSON has no infinity: an open side is left out
        return {k: v for k, v in asdict(value).items() if not (isinstance(v, float) and math.isinf(v))}
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def code(name: str, claim: Claim) -> Record:
    """Hashes of what a result depends on: the definitions that the method and its claim reach, those that its baseline reaches, and
    the rest of the package."""
    # without the methods' folder: a new method must not change the hash of every other result
    package = hashlib.blake2b(digest_size=8)
    for path in sorted(registry.PACKAGE.rglob("*.py")):
        if registry.PACKAGE / "methods" not in path.parents:
            package.update(str(path.relative_to(registry.PACKAGE)).encode() + path.read_bytes())
    return {**definitions(registry.file_of(name), claim.task, claim.versus), "package": package.hexdigest()}


def definitions(path: Path, task: str, versus: str | None) -> Record:
    """The hashes of the definitions that a method's file reaches in the rooms of parts, and of those that its baseline reaches.

    The method's are those of its function, of what its claim names (a measure, a reward), and of the claim's task.
    """
    claimed = [key for word in ("claim", "check") for key in references((path, word))]
    world = registry.task_files().get(task.partition(":")[0])
    starts = [(path, path.stem), *claimed, *([(world, task.partition(":")[0])] if world else [])]
    baselines = {part: registry.file_of(part) for part in (versus.split("+") if versus else ())}
    return {
        "definitions": reaching.hash_of([start for start in starts if _decides(start[0])], follow=_decides),
        "baseline": {part: reaching.hash_of([(file, file.stem)], follow=_decides) for part, file in baselines.items()},
    }


@functools.cache
def _decides(path: Path) -> bool:
    """Whether what a file defines decides what a method is, and not how any method is run.

    The engine serves all methods, and a change of it would call every record old: `reproduce --canary` tells what it changed.
    """
    return (reaching.room_of(path) in DECIDING and path.name not in MACHINERY) or registry.PACKAGE not in path.parents


def fresh(name: str, claim: Claim, where: Path) -> bool:
    """Whether the newest run is complete, and of the claim and the code that it reaches as they are now."""
    record = read(name, where)
    if record is None:
        return False
    last = record["runs"][-1]
    return of_this_code(last, registry.file_of(name)) and last["verdict"] != INCOMPLETE and same_claim(last["claim"], claim)


def same_claim(recorded: Record, claim: Claim) -> bool:
    """Whether a recorded claim is this one. Measures are compared as parts, since older records name them by module path."""
    try:
        by = registry.load_part(recorded.get("by"))
    except RewardlabError:
        # the recorded measure is no longer part of rewardlab
        return False
    # a record from before a field was added has its default
    defaults = {f.name: _plain(f.default) for f in fields(Claim) if f.default is not MISSING and f.name != "by"}
    recorded = json.loads(json.dumps({**defaults, **recorded}))
    # a check has no gate of learning: a claim that became one compares what it compared
    gate = ("start", "learns") if isinstance(claim, Check) else ()
    apart = dict.fromkeys(("by", *AFTERWARDS, *gate))
    return by == claim.by and with_first_names({**recorded, **apart}) == with_first_names({**as_record(claim), **apart})


def of_this_code(run: Record, path: Path) -> bool:
    """Whether a recorded run is of what the method in this file, its claim's world and its baseline compute now.

    Its own hashes say so, or those of later code whose first steps were the same (`canary`).
    """
    now = definitions(path, run["claim"]["task"], run["claim"]["versus"])
    return any(all(known.get(key) == value for key, value in now.items()) for known in (run["code"], run.get("confirmed", {})))


def machine() -> Record:
    """What the seconds of a run depend on."""
    return {"system": platform.system(), "processor": _processor(), "cores": cores()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


@contextmanager
def _locked(where: Path) -> Iterator[None]:
    """Let one process write at a time."""
    # the folder is locked and not the file, which is replaced whenever it is written
    descriptor = os.open(where, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
