"""A tool's pass over a file: rows with their places, kept rows, and dropped rows with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

from .drops import Drop
from .entries import Entry
from .files import STREAM, TABLES, Row, check_out, check_source, output, read, unwritten, write
from .files import encoded as encoded_row
from .values import MISSING, value_of

BROKEN = "broken"
"""The reason of lines that cannot be read."""


@dataclass
class Table:
    """The rows of a file and their places ("line 7"), and its lines that are no rows."""

    source: Path | str
    rows: list[Row] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    broken: list[Entry] = field(default_factory=list)

    @classmethod
    def load(cls, source: Path | str) -> Table:
        table = cls(source)
        for entry in read(source):
            if entry.row is not None:
                table.rows.append(entry.row)
                table.places.append(entry.place)
            elif not entry.blank:
                table.broken.append(entry)
        return table

    def require(self, *columns: str) -> None:
        """Raise RewardlabError for a column that no row has; one that some rows lack is dealt with row by row."""
        for column in columns:
            if self.rows and not self.has(column):
                raise RewardlabError(f"no row of {self.source} has a column {column}; the columns are: {', '.join(self.columns)}")

    @property
    def columns(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row))

    @property
    def why_empty(self) -> str:
        """What a table without rows holds, in words."""
        return f"{self.broken[0].place}: {self.broken[0].why}" if self.broken else "it has no rows"

    def has(self, column: str) -> bool:
        return any(value_of(row, column) is not MISSING for row in self.rows)


@dataclass(frozen=True)
class Places:
    """Where a tool reads and writes. Made first, it refuses what cannot be read or written before anything is done.

    kept: files that are read too, and must not be replaced.
    """

    tool: str
    sources: Sequence[Path | str]
    out: Path | str
    dropped: Path | str | None = None
    kept: Sequence[Path | str] = ()

    def __post_init__(self) -> None:
        inputs = (*self.sources, *self.kept)
        for source in inputs:
            check_source(source)
        for file in (self.out, self.for_dropped):
            if suffix := unwritten(file):
                raise RewardlabError(f"{file}: the data tools write JSON lines, .csv and .parquet files, not {suffix}")
        if sum(str(source) == STREAM for source in inputs) > 1:
            raise RewardlabError("standard input (-) can be read once only")
        check_out(self.out)
        check_out(self.for_dropped)
        if any(_same(self.out, other) for other in self.kept):
            raise RewardlabError(f"{self.out} is read, and would be replaced; give --out another file")
        if Path(self.for_dropped).suffix.lower() in TABLES:
            raise RewardlabError(f"{self.for_dropped}: what is left out is written as JSON lines; give the name of a .jsonl file")
        if any(_same(self.for_dropped, other) for other in (*inputs, self.out)):
            raise RewardlabError(f"{self.for_dropped} cannot hold the rows that are left out too; give --dropped another file")

    @property
    def for_dropped(self) -> Path | str:
        """The file of the rows that are left out: OUT.dropped.jsonl unless another is named."""
        if self.dropped is not None:
            return self.dropped
        out = Path(self.out)
        if str(self.out) == STREAM or (out.exists() and not out.is_file()):
            raise RewardlabError(f"with --out {self.out}, name the file for the rows that are left out: --dropped FILE")
        return out.with_name(f"{out.stem}.dropped.jsonl")

    def finish(
        self, tables: Iterable[Table], left_out: Iterable[tuple[str, Row, Drop]], rows: Sequence[Row], **facts: Any
    ) -> dict[str, Any]:  # fmt: skip
        """Write the rows, and those left out (place, row, why); returns how many, by reason, and `facts`."""
        tables, left_out = list(tables), list(left_out)
        broken = [self._broken(table, entry, len(tables) > 1) for table in tables for entry in table.broken]
        lines = [*broken, *(self._dropped(*of) for of in left_out)]
        # first what would be lost: where the input is replaced, the rows that leave it are on disk already
        self._write_dropped(lines)
        write(self.out, rows, dict.fromkeys(name for table in tables for row in table.rows for name in row))
        counts = Counter(line["reason"] for line in lines)
        read_rows = sum(len(table.rows) + len(table.broken) for table in tables)
        return {
            "tool": self.tool, "rows": read_rows, "written": len(rows), "dropped": dict(counts.most_common()), **facts,
            "out": str(self.out), "dropped_rows": str(self.for_dropped),
            "broken_lines": [f"{line['place']}: {line['why']}" for line in broken],
        }  # fmt: skip

    def _write_dropped(self, lines: Sequence[Row]) -> None:
        before = ""
        # where a file is replaced by its own rest, what earlier tools took out of it is in no other place
        if any(_same(source, self.out) for source in self.sources) and Path(self.for_dropped).is_file():
            before = Path(self.for_dropped).read_text("utf-8")
        with output(self.for_dropped) as file:
            file.write(before)
            file.writelines(map(encoded_row, lines))

    def _broken(self, table: Table, entry: Entry, several: bool) -> Row:
        place = f"{table.source}, {entry.place}" if several else entry.place
        return {"tool": self.tool, "place": place, "reason": BROKEN, "why": entry.why, "raw": entry.raw}

    def _dropped(self, place: str, row: Mapping[str, Any], drop: Drop) -> Row:
        like = {"like": drop.like} if drop.like else {}
        return {"tool": self.tool, "place": place, "reason": drop.reason, "why": drop.why, **like, "row": row}


def _same(a: Path | str, b: Path | str) -> bool:
    return STREAM not in (str(a), str(b)) and Path(a).resolve() == Path(b).resolve()
