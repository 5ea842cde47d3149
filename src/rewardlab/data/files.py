"""Files of rows: JSON lines, a JSON list, CSV or parquet, read without losing a line and written whole or not at all.

JSON lines and lists may be compressed by gzip (`.jsonl.gz`, `.json.gz`), as much published data is."""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from rewardlab.errors import RewardlabError
from rewardlab.text import strict_json
from rewardlab.util.files import new_file
from rewardlab.util.nulls import unpadded

Row = dict[str, Any]
TABLES = (".csv", ".parquet")
STREAM = "-"
"""The name that stands for standard input or output."""
_BOM = b"\xef\xbb\xbf"
UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""How a file of UTF-16 begins; no text in UTF-8 does."""


@dataclass(frozen=True)
class Entry:
    """What a file holds at one place ("line 7"): a row; or, where row is None, a text that is none, and why; or a blank line."""

    place: str
    row: Row | None
    raw: str = ""
    why: str = ""

    @property
    def blank(self) -> bool:
        return self.row is None and not self.why


def read(source: Path | str) -> Iterator[Entry]:
    """What a file holds, in order: a .csv (all its values stay text) or .parquet file, a .json file that is one list, else JSON
    lines; "-" is standard input.

    Raises RewardlabError for a table or a list that cannot be read at all, and for a file of UTF-16, of which no line can be read.
    """
    if Path(source).suffix.lower() in TABLES:
        yield from _table(Path(source))
    elif str(source) == STREAM:
        yield from _lines(sys.stdin.buffer, "standard input")
    else:
        with _opened(Path(source)) as file:
            yield from _list(Path(source), file) if _is_list(Path(source)) else _lines(file, str(source))


def rows_of(path: Path) -> Iterator[tuple[str, Row]]:
    """The rows of a file with their places. Raises RewardlabError for one that is broken."""
    for entry in read(path):
        if entry.blank:
            continue
        if entry.row is None:
            raise RewardlabError(f"{path}, {entry.place}: {entry.why}")
        yield entry.place, entry.row


def count_rows(source: Path | str) -> int | None:
    """The number of entries that `read` will give; None if reading the source would consume it."""
    if Path(source).suffix.lower() in TABLES or not Path(source).is_file() or _is_list(Path(source)):
        return None
    with _opened(Path(source)) as file:
        return sum(1 for _ in file)


def is_rows(path: Path) -> bool:
    """Whether a file's name says that it holds rows."""
    return Path(path.name.lower().removesuffix(".gz")).suffix in (*TABLES, ".jsonl", ".json")


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


def write(out: Path | str, rows: Sequence[Row], columns: Iterable[str] = ()) -> None:
    """Write rows to a .csv or .parquet file, else as JSON lines; "-" is standard output. A file is replaced when all is written.

    The columns of a table are those of all rows. Its cells hold texts as they are and other values as JSON, in a parquet file only
    where the values of a column have no common type.  columns: of a table without rows.
    """
    suffix = Path(out).suffix.lower()
    if suffix not in TABLES:
        with output(out) as file:
            file.writelines(map(encoded, rows))
        return
    columns = list(dict.fromkeys(name for row in rows for name in row) or columns)
    if suffix == ".csv":
        with output(out) as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([_text(row.get(name)) or "" for name in columns] for row in rows)
        return
    import pyarrow
    from pyarrow import parquet

    with new_file(Path(out).resolve()) as temporary:
        table = pyarrow.table({name: _column([row.get(name) for row in rows]) for name in columns})
        parquet.write_table(table, temporary)


@contextmanager
def output(out: Path | str) -> Iterator[IO[str]]:
    """The file to write to; a regular file is replaced when all is written, so that it may be the input too."""
    if str(out) == STREAM:
        yield sys.stdout
        sys.stdout.flush()
    elif Path(out).exists() and not Path(out).is_file():
        # a device or a pipe, such as /dev/null, must not be replaced by a file
        with open(out, "w", encoding="utf-8") as file:
            yield file
    else:
        # what a link points to is replaced, not the link
        with new_file(Path(out).resolve()) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as file:
            yield file
            file.flush()


def check_source(source: Path | str, flag: str = "the input") -> None:
    """Raise RewardlabError unless this is a file that can be read."""
    if not str(source):
        raise RewardlabError(f"the file of {flag} has no name: it is an empty text")
    if str(source) != STREAM and not Path(source).exists():
        raise RewardlabError(f"there is no file {source}")
    if str(source) != STREAM and Path(source).is_dir():
        raise RewardlabError(f"{source} is a folder; give one file")


def check_out(out: Path | str) -> None:
    """Raise RewardlabError unless this file can be written."""
    if not str(out):
        raise RewardlabError("the file of --out has no name: it is an empty text")
    if str(out) == STREAM:
        return
    folder = Path(out).resolve().parent
    if not folder.is_dir():
        raise RewardlabError(f"there is no folder {folder} to write {Path(out).name} into")
    if Path(out).is_dir():
        raise RewardlabError(f"{out} is a folder; give the name of a file in it")
    if not os.access(folder, os.W_OK):
        raise RewardlabError(f"{folder} cannot be written to")


# ---- reading ---------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, whether it is compressed or not."""
    try:
        with open(path, "rb") as file:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if path.suffix.lower() == ".gz" else file
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise RewardlabError(f"{path} is no whole gzip file: {e}") from e


def _is_list(path: Path) -> bool:
    """Whether a .json file is one list of rows, and not a row on each line."""
    if not path.name.lower().removesuffix(".gz").endswith(".json") or not path.is_file():
        return False
    with _opened(path) as file:
        return file.read(64).removeprefix(_BOM).lstrip().startswith(b"[")


def _list(path: Path, file: IO[bytes]) -> Iterator[Entry]:
    try:
        rows = json.loads(file.read().removeprefix(_BOM))
    except ValueError as e:
        raise RewardlabError(f"{path} is not JSON: {e}; JSON lines have the suffix .jsonl") from None
    for number, row in enumerate(rows, 1):
        yield Entry(f"row {number}", row) if isinstance(row, dict) else Entry(f"row {number}", None, str(row), "not an object")


def not_utf8(first: bytes) -> str:
    """What is wrong with a file that begins so, and the command that mends it."""
    return f"not UTF-8; convert it (iconv -f {'utf16' if first[:2] in UTF16 else 'latin1'} -t utf8)"


def _lines(file: IO[bytes], name: str) -> Iterator[Entry]:
    # a binary file ends its lines at \n alone; other separators may be part of a text
    for number, line in enumerate(file, 1):
        if number == 1 and line[:2] in UTF16:
            raise RewardlabError(f"{name}, line 1: {not_utf8(line)}")
        yield _line(line.removeprefix(_BOM) if number == 1 else line, f"line {number}")


def _line(line: bytes, place: str) -> Entry:
    raw = line.decode("utf-8", "replace").rstrip("\r\n")
    if not raw.strip():
        return Entry(place, None)
    try:
        # a row may hold a long reply, so only memory limits its length
        row = strict_json.parse(line.decode(), longest=sys.maxsize)
    except UnicodeDecodeError:
        return Entry(place, None, raw, not_utf8(b""))
    except ValueError as e:
        return Entry(place, None, raw, f"not JSON: {e}")
    return Entry(place, row) if isinstance(row, dict) else Entry(place, None, raw, "not a JSON object")


def _table(path: Path) -> Iterator[Entry]:
    # imported here: it takes half a second, and most files are JSON lines
    import pyarrow

    try:
        yield from (_csv if path.suffix.lower() == ".csv" else _parquet)(path)
    except (pyarrow.ArrowException, OSError) as e:
        raise RewardlabError(f"{path} cannot be read: {' '.join(str(e).split())}") from e


def _csv(path: Path) -> Iterator[Entry]:
    import pyarrow
    from pyarrow import csv

    broken: dict[int, Entry] = {}

    def note(row: Any) -> str:
        # the header is its row 1
        number, columns = row.number - 1, f"{row.actual_columns} cells, but {row.expected_columns} columns"
        broken[number] = Entry(f"row {number}", None, row.text, columns)
        return "skip"

    parse = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=note)
    # rows have numbers only where one thread reads them all
    one_thread = csv.ReadOptions(use_threads=False)
    names = csv.open_csv(path, read_options=one_thread, parse_options=parse).schema.names
    # "1.50" must not become 1.5
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pyarrow.string()))
    number = 1
    for batch in csv.open_csv(path, read_options=one_thread, parse_options=parse, convert_options=as_text):
        for row in batch.to_pylist():
            while number in broken:
                yield broken.pop(number)
                number += 1
            yield Entry(f"row {number}", row)
            number += 1
    yield from (broken[number] for number in sorted(broken))


def _parquet(path: Path) -> Iterator[Entry]:
    from pyarrow import parquet

    rows = (row for batch in parquet.ParquetFile(path).iter_batches() for row in batch.to_pylist())
    for number, row in enumerate(rows, 1):
        # a missing number is NaN in some tables, which JSON does not know
        whole = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in unpadded(row).items()}
        yield Entry(f"row {number}", whole)


# ---- writing ---------------------------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    """A value in a cell of text: text as it is, anything else as JSON."""
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _column(values: list[Any]) -> Any:
    """The values of a column of a parquet file."""
    import pyarrow

    try:
        column = pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array(list(map(_text, values)), pyarrow.string())
    # an object without any key has a type that parquet files do not have
    return pyarrow.array(list(map(_text, values)), pyarrow.string()) if "struct<>" in str(column.type) else column
