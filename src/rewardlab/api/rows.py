"""Rows of replies, from JSON lines, CSV or parquet, without losing a line."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

from rewardlab.errors import RewardlabError
from rewardlab.text import strict_json

Row = dict[str, Any]
TABLES = (".csv", ".parquet")


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
    if Path(source).suffix.lower() in TABLES:
        for number, row in enumerate(_table(Path(source)), 1):
            yield _checked(row, f"row {number}", columns)
    elif str(source) == "-":
        yield from _lines(sys.stdin.buffer, columns)
    else:
        with open(source, "rb") as file:
            yield from _lines(file, columns)


def count_rows(source: Path | str) -> int | None:
    """The number of rows that `rows_of` will give; None if reading the source would consume it."""
    if Path(source).suffix.lower() in TABLES or not Path(source).is_file():
        return None
    with open(source, "rb") as file:
        return sum(1 for _ in file)


def encoded(row: Row) -> str:
    """A row as a line of JSON."""
    # dates and the like, which tables hold, become text
    line = json.dumps(row, ensure_ascii=False, default=str) + "\n"
    try:
        line.encode()
    except UnicodeEncodeError:
        # half of a surrogate pair, which UTF-8 cannot encode; escaped, it is kept
        line = json.dumps(row, default=str) + "\n"
    return line


def _lines(file: IO[bytes], columns: Columns) -> Iterator[Row | Broken]:
    # a binary file ends its lines at \n alone; other separators may be part of a text
    for number, line in enumerate(file, 1):
        yield _row(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, f"line {number}", columns)


def _row(line: bytes, where: str, columns: Columns) -> Row | Broken:
    raw = line.decode("utf-8", "replace").rstrip("\r\n")
    if not raw.strip():
        return BLANK
    try:
        # a row may hold a long reply, so only memory limits its length
        row = strict_json.parse(line.decode(), longest=sys.maxsize)
    except UnicodeDecodeError:
        return Broken(f"{where}: not UTF-8", {"raw": raw})
    except ValueError as e:
        return Broken(f"{where}: not JSON: {e}", {"raw": raw})
    return _checked(row, where, columns) if isinstance(row, dict) else Broken(f"{where}: not a JSON object", {"raw": raw})


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


def _table(path: Path) -> Iterator[Row]:
    """The rows of a CSV file (all its values stay text) or a parquet file."""
    # imported here: it takes half a second, and most files are JSON lines
    import pyarrow
    from pyarrow import csv, parquet

    try:
        if path.suffix.lower() == ".csv":
            parse = csv.ParseOptions(newlines_in_values=True)
            names = csv.open_csv(path, parse_options=parse).schema.names
            # "1.50" must not become 1.5
            as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string()))
            batches = csv.open_csv(path, parse_options=parse, convert_options=as_text)
        else:
            batches = parquet.ParquetFile(path).iter_batches()
        for batch in batches:
            for row in batch.to_pylist():
                # a missing number is NaN in some tables, which JSON does not know
                yield {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
    except (pyarrow.ArrowException, OSError) as e:
        raise RewardlabError(f"{path} cannot be read: {' '.join(str(e).split())}") from e
