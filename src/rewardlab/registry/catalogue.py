"""What `rewardlab list` shows: a row for each method, read from files and results. Imports no method and no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .describe import entry
from .find import PACKAGE, file_of, methods
from .kept import read_each

NOT_RUN = "not run"


def rows(folder: str | None = None) -> list[dict[str, Any]]:
    """Each method's name, folder, path, entry (see `describe`) and the verdict on its claim, by folder and name."""
    return _rows([path for path in methods().values() if folder in (None, path.parent.name)])


def row(name: str) -> dict[str, Any]:
    """The row of one method."""
    return _rows([file_of(name)])[0]


def repository() -> Path | None:
    """The checkout this package is run from, None if it was installed as a package."""
    root = PACKAGE.parents[1]
    return root if (root / "pyproject.toml").is_file() else None


def last_verdict(path: Path) -> str:
    """The verdict of the last run in a results file."""
    try:
        return json.loads(path.read_text("utf-8"))["runs"][-1]["verdict"]
    except (ValueError, KeyError, IndexError, TypeError):
        return "unreadable"


def _rows(paths: list[Path]) -> list[dict[str, Any]]:
    entries = read_each("methods", paths, entry)
    root = repository()
    results = {path.stem: path for path in (root / "results").glob("*.json")} if root else {}
    verdicts = read_each("verdicts", [results[path.stem] for path in paths if path.stem in results], last_verdict)
    table = [
        {
            "name": path.stem,
            "folder": path.parent.name,
            **entries[path],
            "verdict": verdicts[results[path.stem]] if path.stem in results else NOT_RUN,
            "path": str(path),
        }
        for path in paths
    ]
    return sorted(table, key=lambda row: (row["folder"], row["name"]))
