"""The record of every `reproduce`: NAME.json in `results_folder`. Runs are appended, never removed: none can be selected."""

from __future__ import annotations

import ast
import fcntl
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
from rewardlab.core import Part
from rewardlab.errors import RewardlabError
from rewardlab.registry import catalogue
from rewardlab.util.files import check_writable, write_json

from .claim import Claim, Within
from .verdict import INCOMPLETE
from .workers import cores

Record = dict[str, Any]

AFTERWARDS = ("finding",)
"""What a claim says only once it has been run."""


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


def code(name: str, versus: str | None) -> Record:
    """Hashes of what a result depends on: the method's file, its baseline's files, and the rest of the package."""
    # without the methods' folder: a new method must not change the hash of every other result
    package = hashlib.blake2b(digest_size=8)
    for path in sorted(registry.PACKAGE.rglob("*.py")):
        if registry.PACKAGE / "methods" not in path.parents:
            package.update(str(path.relative_to(registry.PACKAGE)).encode() + path.read_bytes())
    baselines = {part: hash_of(registry.file_of(part)) for part in (versus.split("+") if versus else ())}
    return {"method": hash_of(registry.file_of(name)), "baseline": baselines, "package": package.hexdigest()}


def fresh(name: str, claim: Claim, where: Path) -> bool:
    """Whether the newest run is complete, and of the method's file and claim as they are now."""
    record = read(name, where)
    if record is None:
        return False
    last = record["runs"][-1]
    return of_this_file(last, registry.file_of(name)) and last["verdict"] != INCOMPLETE and same_claim(last["claim"], claim)


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
    apart = dict.fromkeys(("by", *AFTERWARDS))
    return by == claim.by and {**recorded, **apart} == {**as_record(claim), **apart}


def hash_of(path: Path) -> str:
    """The hash of what a method's file computes and claims, by which a result tells whether that has changed since.

    Comments, docstrings and layout do not count, nor what the claim says was learnt from its runs, which is written after them.
    """
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Claim":
            node.keywords = [keyword for keyword in node.keywords if keyword.arg not in AFTERWARDS]
    return hashlib.blake2b(ast.dump(tree).encode(), digest_size=8).hexdigest()


def of_this_file(run: Record, path: Path) -> bool:
    """Whether a recorded run is of the method's file as it is now."""
    # older records have a hash of the file's bytes
    return run["code"]["method"] in (hash_of(path), hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest())


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
