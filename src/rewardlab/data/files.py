"""Files of rows: JSON lines, a JSON list, CSV or parquet, read without losing a line and written whole or not at all.

JSON lines, lists and CSV may be compressed by gzip (`.jsonl.gz`, `.json.gz`, `.csv.gz`), as much published data is. What is said
of a broken row has one number: its line in the file, as an editor shows it, or its row where a file has no lines (parquet)."""

from __future__ import annotations

import base64
import csv
import gzip
import json
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from rewardlab.errors import RewardlabError
from rewardlab.text import strict_json
from rewardlab.util.files import new_file
from rewardlab.util.nulls import unpadded

from .csv_rows import table
from .entries import UTF16, Entry, Row, doubled, finite, not_utf8, of_one_line
from .json_lists import elements

TABLES = (".csv", ".parquet")
WRITTEN = (".jsonl", *TABLES)
"""Suffixes of the files that are written; a name without any is that of JSON lines, too, as of a device or a pipe."""
FORMS = f"JSON lines ({WRITTEN[0]}), {TABLES[0]} and {TABLES[1]}"
STREAM = "-"
"""The name that stands for standard input or output."""
MEDIA = {
    b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp", b"BM": "image/bmp",
}  # fmt: skip
"""How files of pictures begin."""
_BOM = b"\xef\xbb\xbf"
PACKED = (".zip", ".zst", ".bz2", ".xz", ".7z", ".tar", ".tgz")
"""Suffixes of files that hold others, or are compressed otherwise than by gzip."""


def read(source: Path | str) -> Iterator[Entry]:
    """What a file holds, in order: a .csv, .tsv (all values stay text) or .parquet file, a .json file that is one list, else JSON
    lines; "-" is standard input.

    Raises RewardlabError for a table or a list that cannot be read at all, and for a file of UTF-16 or of an archive, of which no
    line can be read.
    """
    path = Path(source)
    check_source(source)
    if str(source) == STREAM:
        yield from _lines(sys.stdin.buffer, "standard input")
    elif path.suffix.lower() == ".parquet":
        yield from _parquet(path)
    else:
        with _opened(path) as file:
            form = table if _form(path) in (".csv", ".tsv") else _list if _is_list(path) else _lines
            yield from form(file, str(source))


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
    if _form(Path(source)) in (*TABLES, ".tsv") or not Path(source).is_file() or _is_list(Path(source)):
        return None
    with _opened(Path(source)) as file:
        return sum(1 for _ in file)


def is_rows(path: Path) -> bool:
    """Whether a file's name says that it holds rows. A .tsv is read where it is named; in a folder it is mostly a table beside the
    rows, as BEIR's judgements are."""
    return _form(path) in (*TABLES, ".jsonl", ".json")


def encoded(row: Row) -> str:
    """A row as a line of JSON."""
    # dates and the like, which tables hold, become text; a number that JSON does not know could not be read again
    row = finite(row)
    line = json.dumps(row, ensure_ascii=False, default=_as_text, allow_nan=False) + "\n"
    try:
        line.encode()
    except UnicodeEncodeError:
        # half of a surrogate pair, which UTF-8 cannot encode; escaped, it is kept
        line = json.dumps(row, default=_as_text) + "\n"
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
    """Raise RewardlabError unless rows can be written to this file."""
    if not str(out):
        raise RewardlabError("the file of --out has no name: it is an empty text")
    if str(out) == STREAM:
        return
    if suffix := unwritten(out):
        raise RewardlabError(f"{out}: rows are written to {FORMS} files, not {suffix}")
    folder = Path(out).resolve().parent
    if not folder.is_dir():
        raise RewardlabError(f"there is no folder {folder} to write {Path(out).name} into")
    if Path(out).is_dir():
        raise RewardlabError(f"{out} is a folder; give the name of a file in it")
    if not os.access(folder, os.W_OK):
        raise RewardlabError(f"{folder} cannot be written to")


def unwritten(out: Path | str) -> str:
    """The suffix of a file in whose form no rows are written; "" for one of those that are, and for standard output."""
    suffix = Path(out).suffix.lower()
    device = Path(out).exists() and not Path(out).is_file()
    return "" if suffix in ("", *WRITTEN) or device else suffix


# ---- reading ---------------------------------------------------------------------------------------------------------


def _form(path: Path) -> str:
    """The suffix that says how rows are written, whether the file is compressed or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, whether it is compressed or not."""
    if path.suffix.lower() in PACKED or path.name.lower().endswith(".parquet.gz"):
        raise RewardlabError(f"{path} is packed; unpack it, and give the file of rows in it")
    try:
        with open(path, "rb") as file:
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if path.suffix.lower() == ".gz" else file
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise RewardlabError(f"{path} is no whole gzip file: {e}") from e


def _is_list(path: Path) -> bool:
    """Whether a .json file is one list of rows, and not a row on each line."""
    if _form(path) != ".json" or not path.is_file():
        return False
    with _opened(path) as file:
        return file.read(64).removeprefix(_BOM).lstrip().startswith(b"[")


def _list(file: IO[bytes], name: str) -> Iterator[Entry]:
    text = file.read().removeprefix(_BOM)
    try:
        # whole, before the first row is given: what is no list has no rows
        found = [_element(f"row {number}", *of) for number, of in enumerate(elements(text.decode()), 1)]
    except json.JSONDecodeError as e:
        raise RewardlabError(f"{name}, line {e.lineno}: not JSON: {of_one_line(e)}; JSON lines have the suffix .jsonl") from None
    except UnicodeDecodeError as e:
        raise RewardlabError(f"{name}, line {text[: e.start].count(10) + 1}: {not_utf8(text)}") from None
    yield from found


def _element(place: str, raw: str, row: Any, why: str) -> Entry:
    broken = f"not JSON: {why}" if why else "" if isinstance(row, dict) else "not a JSON object"
    return Entry(place, None, raw, broken) if broken else Entry(place, row)


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
        row = strict_json.parse(line.decode().rstrip("\r\n"), longest=sys.maxsize)
    except UnicodeDecodeError:
        return Entry(place, None, raw, not_utf8(b""))
    except ValueError as e:
        return Entry(place, None, raw, f"not JSON: {of_one_line(e)}")
    return Entry(place, row) if isinstance(row, dict) else Entry(place, None, raw, "not a JSON object")


def _parquet(path: Path) -> Iterator[Entry]:
    # imported here: it takes half a second, and most files are JSON lines
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            if twice := doubled(file.schema_arrow):
                raise RewardlabError(f"{path}: {twice}")
            rows = (row for batch in file.iter_batches() for row in batch.to_pylist())
            for number, row in enumerate(rows, 1):
                # a missing number is NaN in some tables, which JSON does not know
                yield Entry(f"row {number}", finite(unpadded(row)))
    except (pyarrow.ArrowException, OSError) as e:
        raise RewardlabError(f"{path} cannot be read: {' '.join(str(e).split())}") from e


# ---- writing ---------------------------------------------------------------------------------------------------------


def _text(value: Any) -> str | None:
    """A value in a cell of text: text as it is, anything else as JSON."""
    if isinstance(value, str) or (value := finite(value)) is None:
        return value
    return json.dumps(value, ensure_ascii=False, default=_as_text, allow_nan=False)


def _as_text(value: Any) -> str:
    """A value that JSON does not know, as text: of bytes, such as those of a picture, an address that holds them (`data:`)."""
    if not isinstance(value, bytes):
        return str(value)
    media = next((name for start, name in MEDIA.items() if value.startswith(start)), "application/octet-stream")
    return f"data:{media};base64,{base64.b64encode(value).decode()}"


def _column(values: list[Any]) -> Any:
    """The values of a column of a parquet file."""
    import pyarrow

    try:
        column = pyarrow.array(values)
    except (pyarrow.ArrowException, OverflowError):
        return pyarrow.array(list(map(_text, values)), pyarrow.string())
    # an object without any key has a type that parquet files do not have
    return pyarrow.array(list(map(_text, values)), pyarrow.string()) if "struct<>" in str(column.type) else column
