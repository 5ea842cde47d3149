"""Rows of replies that a verifier judges: those of a file that have its columns, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.data.files import Row, read


class Columns(NamedTuple):
    """The names of the columns that are read."""

    prompt: str
    answer: str
    response: str


@dataclass(frozen=True)
class Broken:
    """A line that cannot be judged, and why. data: its columns, or the line as it is, under "raw".  missing: columns it lacks."""

    why: str
    data: Mapping[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    def row(self) -> Row:
        return {**self.data, "correct": None, "extracted": "", "why": self.why} if self.why else {}


BLANK = Broken("")
"""A line without content: it is kept, so that lines keep their numbers."""


def rows_of(source: Path | str, columns: Columns) -> Iterator[Row | Broken]:
    """The rows of a file, in order; "-" is standard input, as JSON lines."""
    for entry in read(source):
        if entry.blank:
            yield BLANK
        elif entry.row is None:
            yield Broken(f"{entry.place}: {entry.why}", {"raw": entry.raw})
        else:
            yield _checked(entry.row, entry.place, columns)


def _checked(row: Row, where: str, columns: Columns) -> Row | Broken:
    missing = [name for name in (columns.response, columns.answer) if name not in row]
    if not missing and row[columns.response] is None:
        return Broken(f"{where}: there is no reply: {columns.response} is null", row)
    if not missing:
        return row
    if "raw" in row and row.get("why") and row.get("correct", 0) is None:
        # broken when it was judged before: the first cause is the true one
        return Broken(str(row["why"]), row)
    has = f"; it has: {', '.join(row)}" if row else ""
    return Broken(f"{where}: no column {' and no column '.join(missing)}{has}", row, tuple(missing))
