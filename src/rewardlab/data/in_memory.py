"""Rows that are given in Python in place of a file: a list of dicts, a data frame, a dataset, or splits of these.

    task([{"prompt": "What is 3 + 4?", "answer": "7"}, ...])
    train("grpo", "llama", pandas.read_csv("mine.csv"), prompt_column="question")

They are read as the rows of a file are, and named "row 1" in messages.
"""

from __future__ import annotations

import datetime
import decimal
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.data.entries import halved
from rewardlab.data.files import MEDIA, write
from rewardlab.data.hub import holds_pictures, stored_rows
from rewardlab.data.pictures import Picture, address_of, is_pixels, pictures_in, png
from rewardlab.errors import RewardlabError
from rewardlab.util.nulls import is_hole, unpadded

Row = tuple[str, Mapping[str, Any] | RewardlabError]
"""Where a row stands, for messages, and its columns, or why it cannot be read."""
SPLITS = ("train", "test", "validation", "valid", "val", "dev")
PLAIN = (bool, int, float, str, bytes, datetime.date, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)
"""What a value may be besides a list, an object of values, and a picture: what files and tables hold."""


def is_rows(value: Any) -> bool:
    """Whether a value may hold rows: it has several of something, and is neither a text nor a path."""
    if isinstance(value, str | bytes | os.PathLike) or hasattr(value, "train"):
        return False
    return isinstance(value, Iterable) or hasattr(value, "to_pylist")


class GivenRows(str):
    """Rows in the place of a file's name, which is how messages name them: they go wherever the name of a file does."""

    data: Any
    place: str

    @classmethod
    def of(cls, data: Any, name: str = "rows", place: str = "row") -> GivenRows:
        """place: names a row, before its number."""
        if isinstance(data, GivenRows):
            return data
        made = cls(name)
        # what can be read once is kept
        made.data, made.place = (list(data) if isinstance(data, Iterator) else data), place
        return made

    def splits(self) -> dict[str, Iterator[Row]]:
        """The rows ("train"), or those of each split. Raises RewardlabError for what holds none."""
        data = self.data
        if not isinstance(data, Mapping):
            return {"train": _rows(data, self.place)}
        if data and all(_is_table(value) for value in data.values()):
            return {str(name): _rows(rows, f"{name} {self.place}") for name, rows in data.items()}
        return {"train": _rows(_of_columns(data), self.place)}

    def written(self, path: Path) -> Path:
        """The rows as a file of JSON lines, PATH.jsonl, or of several splits a folder PATH of such files; returns where they are.

        Pictures are written as addresses that hold them (`data:`). Raises RewardlabError for rows that cannot be read, and for
        other bytes, which no JSON holds.
        """
        splits = self.splits()
        for name, rows in splits.items():
            whole = [_as_json(row, f"{self}, {place}") for place, row in rows]
            file = path.with_suffix(".jsonl") if len(splits) == 1 else path / f"{name}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, whole)
        return path.with_suffix(".jsonl") if len(splits) == 1 else path


def _as_json(row: Mapping[str, Any] | RewardlabError, place: str) -> dict[str, Any]:
    if isinstance(row, RewardlabError):
        raise row
    try:
        return {column: _stored(value, column) for column, value in row.items()}
    except ValueError as e:
        raise RewardlabError(f"{place}: {e}") from None


def _stored(value: Any, column: str) -> Any:
    """A value as JSON holds it: pictures as addresses. Raises ValueError for bytes that are none."""
    if isinstance(value, Mapping):
        return {name: _stored(inner, column) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_stored(inner, column) for inner in value]
    if isinstance(value, Picture) or type(value).__module__.partition(".")[0] == "PIL":
        return address_of(pictures_in(value)[0])
    if isinstance(value, bytes) and not value.startswith(tuple(MEDIA)):
        raise ValueError(f"the column {column!r} holds bytes, which cannot be kept as JSON lines: name a file of the rows")
    return value


def _is_table(value: Any) -> bool:
    """Whether a value holds rows, and no column."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(row, Mapping) for row in value) and not all({*row} >= {"role"} for row in value)
    return is_rows(value) and (hasattr(value, "column_names") or hasattr(value, "columns"))


def _of_columns(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of {"prompt": [...], "answer": [...]}."""
    if not data or not all(isinstance(column, list | tuple) or hasattr(column, "tolist") for column in data.values()):
        raise RewardlabError(f"rows are given in a list, [{{'prompt': ..., 'answer': ...}}, ...], not as the dict {str(data)[:60]}")
    lengths = {name: len(column) for name, column in data.items()}
    if len(set(lengths.values())) > 1:
        raise RewardlabError(f"columns of rows must be as long as one another; they are: {lengths}")
    return [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]


def _rows(data: Any, place: str) -> Iterator[Row]:
    from_arrow = hasattr(data, "column_names")
    for number, row in enumerate(_listed(data), 1):
        at = f"{place} {number}"
        try:
            plain = _plain_row(row)
            yield at, unpadded(plain) if from_arrow else plain
        except RewardlabError as e:
            yield at, RewardlabError(f"{at}: {e}")


def _listed(data: Any) -> Iterable[Any]:
    """The rows of a table of any library, or of a list."""
    if holds_pictures(data):
        return (row for _, row in stored_rows(data))
    if hasattr(data, "to_pylist"):
        return list(data.to_pylist())
    if hasattr(data, "to_dicts"):
        return list(data.to_dicts())
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        names = list(data.columns)
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise RewardlabError(f"two columns of the data frame are named {twice!r}: rename one")
        return list(data.to_dict(orient="records"))
    rows: Iterable[Any] = data
    return rows


def _plain_row(row: Any) -> dict[str, Any]:
    if not isinstance(row, Mapping):
        hint = "; problems made in Python are given in a Task" if hasattr(row, "prompt") else ""
        raise RewardlabError(f"expected an object with columns, found {type(row).__name__}{hint}")
    if odd := [name for name in row if not isinstance(name, str)]:
        raise RewardlabError(f"the name of a column must be a text, not {odd[0]!r}")
    plain = {name: _plain(value, name) for name, value in row.items()}
    if problem := halved(plain):
        raise RewardlabError(problem)
    return plain


def _plain(value: Any, column: str) -> Any:
    """A value as a file holds it: numbers and arrays of NumPy become Python's, and what a table writes for a hole is None."""
    if isinstance(value, Mapping):
        if odd := [name for name in value if not isinstance(name, str)]:
            raise RewardlabError(f"the column {column!r} holds an object whose key {odd[0]!r} is no text")
        return {name: _plain(inner, column) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner, column) for inner in value]
    if isinstance(value, Picture) or type(value).__module__.partition(".")[0] == "PIL":
        return value
    if is_pixels(value):
        return Picture(png(value))
    if hasattr(value, "tolist"):
        return _plain(value.tolist(), column)
    if is_hole(value):
        return None
    if isinstance(value, PLAIN):
        return value
    raise RewardlabError(f"the column {column!r} holds a {type(value).__name__}, which no file of rows could hold")
