"""Rows of the user's own data: from files, folders, datasets saved to disk, and datasets of the Hugging Face hub."""

from __future__ import annotations

import csv
import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

Row = tuple[str, Mapping[str, Any]]
"""Where a row stands, for messages, and its columns."""

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
HELD_OUT = ("test", "validation", "valid", "val", "dev")
"""Names of splits that are held out; the first that the data has is used."""
HUB = "hub:"


def splits(source: str) -> dict[str, Iterator[Row]]:
    """The rows of a file ("train"), or of the splits of a folder or dataset: "train" and "test", as far as it has them.

    source: a file, a folder with train.* and test.*, a folder written by `datasets`, or hub:OWNER/NAME,config=C,split=S.
    Raises RewardlabError, with file and line, for whatever cannot be read; for broken rows when they are reached.
    """
    if source.startswith(HUB):
        from .hub import load

        return _named(load(source.removeprefix(HUB)), source)
    path = _existing(source)
    if path.is_file():
        return {"train": _rows(path)}
    if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
        return _named(_saved(path), str(path))
    found = {name: files for name in ("train", *HELD_OUT) if (files := _files_of(path, name))}
    if not found:
        other = ", ".join(SUFFIXES[1:])
        raise RewardlabError(f"{path} holds neither train.jsonl (or {other}) nor a dataset saved to disk")
    return _train_and_test({name: _chained(files) for name, files in found.items()})


def _existing(source: str) -> Path:
    file = Path(source).expanduser()
    if file.is_file() and file.suffix not in SUFFIXES:
        raise RewardlabError(
            f"cannot read {file}: problems are in a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file, or a folder"
        )
    if file.exists():
        return file
    near = difflib.get_close_matches(file.name, [p.name for p in file.parent.glob("*")], n=1)
    raise RewardlabError(f"there is no file or folder {file}" + (f"; did you mean {near[0]}?" if near else ""))


def _train_and_test(found: Mapping[str, Iterator[Row]]) -> dict[str, Iterator[Row]]:
    """Of all splits "train" and the first held-out one, which becomes "test"."""
    test = [name for name in HELD_OUT if name in found][:1]
    return {new: found[old] for new, olds in (("train", ["train"]), ("test", test)) for old in olds if old in found}


def _files_of(folder: Path, split: str) -> list[Path]:
    """The files of a split: train.jsonl, or the parts train-00000-of-00002.parquet; in the folder, or in its folder `data`."""
    for place in (folder, folder / "data"):
        for suffix in SUFFIXES:
            if (file := place / f"{split}{suffix}").is_file():
                return [file]
            if parts := sorted(place.glob(f"{split}-*{suffix}")):
                return parts
    return []


def _chained(files: Iterable[Path]) -> Iterator[Row]:
    return (row for file in files for row in _rows(file))


def _rows(path: Path) -> Iterator[Row]:
    read = {".jsonl": _json_lines, ".json": _json, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}[path.suffix]
    return read(path)


def _json_lines(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            place = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except ValueError as e:
                raise RewardlabError(f"{place}: broken JSON: {e}") from e
            yield place, _object(row, place)


def _json(path: Path) -> Iterator[Row]:
    try:
        rows = json.loads(path.read_bytes())
    except ValueError as e:
        place = f"{path}, line {e.lineno}" if isinstance(e, json.JSONDecodeError) else str(path)
        hint = "; a file with one object a line is named .jsonl" if "Extra data" in str(e) else ""
        raise RewardlabError(f"{place}: broken JSON: {e}{hint}") from e
    if not isinstance(rows, list):
        raise RewardlabError(f"{path}: expected an array of objects, found {type(rows).__name__}")
    for number, row in enumerate(rows, 1):
        place = f"{path}, object {number}"
        yield place, _object(row, place)


def _object(row: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise RewardlabError(f"{place}: expected an object with columns, found {type(row).__name__}")
    return row


def _csv(path: Path) -> Iterator[Row]:
    # the default limit, 131,072 characters, is less than a long solution
    csv.field_size_limit(2**31 - 1)
    header: list[str] = []
    # utf-8-sig: spreadsheets put a mark before the first column's name
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",", strict=True)
        while True:
            # a cell may hold line breaks: a row is named by its first line
            place = f"{path}, line {reader.line_num + 1}"
            try:
                cells = next(reader, None)
            except (csv.Error, UnicodeDecodeError) as e:
                raise RewardlabError(f"{place}: broken CSV: {e}") from e
            if cells is None:
                return
            if not header:
                header = cells
            elif cells and len(cells) != len(header):
                raise RewardlabError(f"{place}: {len(cells)} cells, but {len(header)} columns: {', '.join(header)}")
            elif cells:
                yield place, dict(zip(header, map(_cell, cells), strict=True))


def _cell(text: str) -> Any:
    """The text of a cell, or the conversation that it holds as JSON."""
    if not text.startswith('[{"'):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as e:
        raise RewardlabError(f"{path} is not a parquet file that can be read: {e}") from e
    for number, row in enumerate(table.to_pylist(), 1):
        yield f"{path}, row {number}", row


def _saved(path: Path) -> Any:
    """A dataset, or a dict of its splits, that was saved to disk."""
    try:
        import datasets
    except ImportError as e:
        raise RewardlabError(f"{path} is a saved dataset; to read it: pip install 'rewardlab[data]'") from e
    try:
        return datasets.load_from_disk(str(path))
    except Exception as e:
        raise RewardlabError(f"cannot load the dataset in {path}: {e}") from e


def _named(data: Any, source: str) -> dict[str, Iterator[Row]]:
    """The rows of a dataset, or of its splits."""
    found = dict(data) if isinstance(data, dict) else {"train": data}
    chosen = _train_and_test({name: _numbered(rows, f"{source}, {name} row") for name, rows in found.items()})
    if not chosen:
        raise RewardlabError(f"{source} has no split 'train' or 'test'; it has: {', '.join(found)}")
    return chosen


def _numbered(rows: Iterable[Mapping[str, Any]], place: str) -> Iterator[Row]:
    return ((f"{place} {i}", row) for i, row in enumerate(rows, 1))
