"""Rows of a CSV file, as texts: "1.50" stays "1.50". A row that is broken keeps its text, and those after it are read.

Cells are separated by commas, or by semicolons, tabs or bars, as spreadsheets of some languages write them.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import IO

from rewardlab.errors import RewardlabError

from .entries import Entry, named_twice, not_utf8

DELIMITERS = (",", ";", "\t", "|")
_NO_TEXT = re.compile("[\udc80-\udcff]")
"""The surrogates that stand for bytes that are not UTF-8."""


def table(file: IO[bytes], name: str) -> Iterator[Entry]:
    """The rows of a table in CSV, whose first line names the columns. A row is named by the line where it begins.

    file: its bytes, not compressed.  name: of the file, in messages.
    Raises RewardlabError where there are no columns, where two have one name, or where they cannot be read.
    """
    # the default limit, 131,072 characters, is less than a long reply
    csv.field_size_limit(2**31 - 1)
    # utf-8-sig: spreadsheets put a mark before the first column's name; bytes that are not UTF-8 become surrogates
    text = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
    separated = delimiter(lambda: _again(text)) if text.seekable() else ","
    taken: list[str] = []
    columns: list[str] = []
    reader = csv.reader(_noted(_again(text) if text.seekable() else text, taken), delimiter=separated)
    while True:
        place = f"line {reader.line_num + 1}"
        taken.clear()
        cells = next(reader, None)
        if cells is None:
            break
        if not cells:
            continue
        raw = "".join(taken).rstrip("\r\n")
        why = _broken_row(raw, cells, columns, separated)
        if columns:
            yield Entry(place, None, _decoded(raw), why) if why else Entry(place, dict(zip(columns, cells, strict=True)))
        elif why:
            raise RewardlabError(f"{name}, {place}: {why}")
        elif twice := named_twice(cells):
            raise RewardlabError(f"{name}, {place}: {twice}")
        else:
            columns = cells
    if not columns:
        raise RewardlabError(f"{name} is empty: its first line should name the columns")


def delimiter(lines: Callable[[], Iterable[str]]) -> str:
    """What separates the cells: the first that divides header and first row into as many cells, more than one.

    lines: gives the lines of the file from its beginning.
    """
    for candidate in DELIMITERS:
        try:
            counts = [len(cells) for cells in islice(csv.reader(lines(), delimiter=candidate, strict=True), 2)]
        except csv.Error:
            continue
        if counts and counts[0] > 1 and counts[0] == counts[-1]:
            return candidate
    return ","


def _again(text: IO[str]) -> IO[str]:
    text.seek(0)
    return text


def _noted(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    """These lines, each noted in `taken` too."""
    for line in lines:
        taken.append(line)
        yield line


def _broken_row(raw: str, cells: Sequence[str], columns: Sequence[str], separated: str) -> str:
    """What is wrong with a row of a table, or "".  raw: its text."""
    if not raw.isascii() and _NO_TEXT.search(raw):
        return not_utf8(raw[:2].encode("utf-8", "surrogateescape"))
    if raw.count('"') % 2 and _unclosed(raw, separated):
        return "the quote that opens in this row is not closed, so all that follows is taken for one cell"
    if columns and len(cells) != len(columns):
        return f"{len(cells)} cell{'s' * (len(cells) != 1)}, but {len(columns)} columns"
    return ""


def _unclosed(raw: str, separated: str) -> bool:
    try:
        list(csv.reader(io.StringIO(raw, newline=""), delimiter=separated, strict=True))
    except csv.Error as e:
        return "end of data" in str(e)
    return False


def _decoded(raw: str) -> str:
    """A text in which surrogates stand for bytes that are not UTF-8, as it can be shown."""
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
