"""Rows of replies that a verifier judges: those of a file that have its columns, and what is wrong with the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.data.files import Row, read
from rewardlab.errors import RewardlabError
from rewardlab.verifiers.contract import GOLD, REPLY

FIRST = 100
"""Rows that are read before anything is written, to refuse a file that lacks a column."""
OUTPUT = ("correct", "extracted", "why")
"""The columns that a verdict adds."""


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

Item = Row | Broken
"""A line of a file of replies."""


def rows_of(source: Path | str, columns: Columns) -> Iterator[Item]:
    """The rows of a file, in order; "-" is standard input, as JSON lines."""
    for entry in read(source):
        if entry.blank:
            yield BLANK
        elif entry.row is None:
            yield Broken(f"{entry.place}: {entry.why}", {"raw": entry.raw})
        else:
            yield _checked(entry.row, entry.place, columns)


def _checked(row: Row, where: str, columns: Columns) -> Item:
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


def begun(source: Path | str, columns: Columns) -> Iterator[Item]:
    """The rows of a file. Raises RewardlabError if its first rows show that it is not a file of such replies."""
    rows = rows_of(source, columns)
    first = list(islice(rows, FIRST))
    lacking = {item.missing if isinstance(item, Broken) else () for item in first if isinstance(item, dict) or item.data}
    if len(lacking) == 1 and (missing := lacking.pop()):
        example = next(item for item in first if isinstance(item, Broken) and item.missing)
        has = f"; they have: {', '.join(example.data)}" if example.data else ""
        flags = " ".join(_flag(name, example.data) for name in ("response", "answer") if getattr(columns, name) in missing)
        raise RewardlabError(
            f"the rows of {source} have no column {' and no column '.join(missing)}{has}; "
            f"name {'them' if len(missing) > 1 else 'it'}: {flags}"
        )
    for item in first:
        own = [name for name in OUTPUT if name in (item if isinstance(item, dict) else item.data)]
        if own and len(own) < len(OUTPUT):
            raise RewardlabError(
                f"the rows of {source} have a column {own[0]}, which the verdict would overwrite; rename that column"
            )
    return chain(first, rows)


def _flag(name: str, row: Mapping[str, Any]) -> str:
    """The flag that names a column, with the one that is likely meant."""
    meant = next((other for other in {"answer": GOLD, "response": REPLY}[name] if other in row), "NAME")
    return f"--{name}-column {meant}"
