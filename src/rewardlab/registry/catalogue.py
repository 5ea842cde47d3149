"""What `rewardlab list` shows: a row for each method, read from files and results. Imports no method and no torch."""

from __future__ import annotations

import functools
import json
import operator
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rewardlab.data.columns import Data
from rewardlab.registry.describe import entry
from rewardlab.registry.find import PACKAGE, file_of, methods, names_in
from rewardlab.registry.index import read_each
from rewardlab.registry.verdicts import INERT, inert, last_of, shown

NOT_RUN, UNREADABLE = "not run", "unreadable"
SHIPPED = PACKAGE / "results"
"""The results that come with the package."""


def rows(folder: str | None = None) -> list[dict[str, Any]]:
    """Each method's name, folder, path, entry (see `describe`) and the verdict on its claim, by folder and name."""
    return _rows([path for path in methods().values() if folder in (None, path.parent.name)])


def row(name: str) -> dict[str, Any]:
    """The row of one method."""
    return _rows([file_of(name)])[0]


def data_of(name: str) -> Data | None:
    """The rows that a method or a stack reads, as its files state them; None where none does."""
    stated = [Data.from_json(found) for part in names_in(name) if (found := row(part)["data"])]
    return functools.reduce(operator.or_, stated) if stated else None


def repository() -> Path | None:
    """The checkout this package is run from, None if it was installed as a package."""
    root = PACKAGE.parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def results_folder(path: Path) -> Path:
    """Where the results of the method in this file are written: $REWARDLAB_RESULTS, else by where the method is.

    A method of the package, in a checkout: the folder that ships with the package; installed: results/ in the working folder. A
    method from outside (REWARDLAB_METHODS): results/ beside its file.
    """
    if chosen := os.environ.get("REWARDLAB_RESULTS"):
        return Path(chosen).resolve()
    if PACKAGE not in path.parents:
        return path.parent / "results"
    return SHIPPED if repository() else Path.cwd() / "results"


def record_of(path: Path) -> Path | None:
    """The file with the results of the method in this file: of runs on this machine, else those that came with it."""
    came_with_it = SHIPPED if PACKAGE in path.parents else path.parent / "results"
    files = (folder / f"{path.stem}.json" for folder in (results_folder(path), came_with_it))
    return next((file for file in files if file.is_file()), None)


def verdicts_of(path: Path) -> dict[str, Any]:
    """Of the last run in a results file: the version of the claim that it is on, and its verdict in every reading of the file: for
    a claim and for a check, which are by construction or not.
    """
    try:
        last = last_of(json.loads(path.read_text("utf-8")))
        words = {_reading(check, sanity): shown(last, check, sanity) for check in (False, True) for sanity in (False, True)}
        return {"version": last.get("claim", {}).get("version", 1), "inert": inert(last), **words}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return {}


def _reading(check: bool, sanity: bool) -> str:
    return f"{'check' if check else 'claim'}{' by construction' if sanity else ''}"


def _rows(paths: list[Path]) -> list[dict[str, Any]]:
    entries = read_each("methods", paths, entry)
    records = {path: record for path in paths if (record := record_of(path))}
    verdicts = read_each("words", records.values(), verdicts_of)
    table = [
        {
            "name": path.stem,
            "folder": path.parent.name,
            **entries[path],
            "verdict": _verdict(verdicts[records[path]], entries[path]) if path in records else NOT_RUN,
            "path": str(path),
            "record": str(records[path]) if path in records else None,
        }
        for path in paths
    ]
    return sorted(table, key=lambda row: (row["folder"], row["name"]))


def _verdict(found: Mapping[str, Any], entry: Mapping[str, Any]) -> str:
    """The verdict as it counts for what the method says now: one on an earlier version says nothing about it."""
    if not found:
        return UNREADABLE
    if found["version"] != entry["version"]:
        return NOT_RUN
    word = found[_reading(entry["shows"] == "check", entry["sanity"])]
    return f"{word}, {INERT}" if found["inert"] else word
