"""The record of every `reproduce`: results/NAME.json. Runs are only ever added, so nothing can be picked."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.core import Part
from rewardlab.errors import RewardlabError
from rewardlab.registry import catalogue
from rewardlab.util.files import write_json

from .claim import Claim
from .verdict import INCOMPLETE
from .workers import cores

Record = dict[str, Any]


def folder() -> Path:
    """results/ of the checkout, else of the working folder."""
    return (catalogue.repository() or Path.cwd()) / "results"


def read(name: str, where: Path) -> Record | None:
    """What is recorded of a method, None if nothing is."""
    path = where / f"{name}.json"
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text("utf-8"))
        record["runs"][-1]["verdict"]
    except (ValueError, KeyError, IndexError, TypeError) as e:
        raise RewardlabError(f"{path} is no record of results ({type(e).__name__}: {e}); restore it from version control") from e
    return record


def append(name: str, claim: Record, run: Record, where: Path) -> Path:
    """Add a run to the record of a method, whole or not at all, whoever else is adding."""
    where.mkdir(parents=True, exist_ok=True)
    path = where / f"{name}.json"
    with _locked(where):
        held = read(name, where) or {"runs": []}
        system = next(row["system"] for row in catalogue.rows(registry.file_of(name).parent.name) if row["name"] == name)
        write_json(path, {"name": name, "system": system, "claim": claim, "runs": [*held["runs"], run]})
    return path


def as_record(claim: Claim) -> Record:
    """A claim as JSON holds it."""
    found = {f.name: getattr(claim, f.name) for f in fields(Claim)}
    plain = {k: v.to_json() if isinstance(v, Part) else dict(v) if isinstance(v, Mapping) else v for k, v in found.items()}
    return json.loads(json.dumps(plain))


def code(name: str, versus: str | None) -> Record:
    """Hashes of what a result depends on: the method's file, its baseline's files, and the rest of the package."""
    package = hashlib.blake2b(digest_size=8)
    for path in sorted(registry.PACKAGE.rglob("*.py")):
        if registry.PACKAGE / "methods" not in path.parents:
            package.update(str(path.relative_to(registry.PACKAGE)).encode() + path.read_bytes())
    baselines = {part: catalogue.hash_of(registry.file_of(part)) for part in (versus.split("+") if versus else ())}
    return {"method": catalogue.hash_of(registry.file_of(name)), "baseline": baselines, "package": package.hexdigest()}


def fresh(name: str, claim: Claim, where: Path) -> bool:
    """Whether the newest run is whole, and of the method's file and claim as they are now."""
    record = read(name, where)
    if record is None:
        return False
    last = record["runs"][-1]
    same = last["claim"] == as_record(claim) and last["code"]["method"] == catalogue.hash_of(registry.file_of(name))
    return same and last["verdict"] != INCOMPLETE


def machine() -> Record:
    return {"system": platform.system(), "processor": _processor(), "cores": cores()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


@contextmanager
def _locked(where: Path) -> Iterator[None]:
    """One writer at a time."""
    descriptor = os.open(where, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
