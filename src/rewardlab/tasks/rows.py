"""Rows of the user's own data: from files, folders, datasets saved to disk, and datasets of the Hugging Face hub."""

from __future__ import annotations

import csv
import difflib
import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.data.csv_rows import delimiter
from rewardlab.data.entries import doubled, halved, named_twice, not_utf8, of_one_line
from rewardlab.data.hub import holds_pictures, is_saved, saved, stored_rows
from rewardlab.data.json_lists import elements, members
from rewardlab.errors import RewardlabError
from rewardlab.text import strict_json
from rewardlab.util.nulls import unpadded

from .conversations import decoded

Row = tuple[str, Mapping[str, Any] | RewardlabError]
"""Where a row stands, for messages, and its columns, or why it cannot be read."""

SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".parquet")
PACKED = tuple(f"{suffix}.gz" for suffix in SUFFIXES[:-1])
"""Texts compressed by gzip; Parquet files are compressed within."""
HELD_OUT = ("test", "validation", "valid", "val", "dev")
"""Names of splits that are held out; the first that the data has is used."""
HUB = "hub:"
SHOWN = 5
"""What is named of what a folder holds, at most."""
_OF = re.compile(r"-of-(\d+)$")


def splits(source: str) -> dict[str, Iterator[Row]]:
    """The rows of a file ("train"), or of the splits of a folder or dataset: "train" and "test", as far as it has them.

    source: a file, a folder with train.* and test.*, a folder written by `datasets`, or hub:OWNER/NAME,config=C,split=S.
    Raises RewardlabError, with file and line, for whatever cannot be read; a broken row comes as its error.
    """
    if source.startswith(HUB):
        from rewardlab.data.hub import load

        return _named(load(source.removeprefix(HUB)), source)
    path = _existing(source)
    if path.is_file():
        return {"train": _rows(path)}
    if is_saved(path):
        return _named(saved(path), str(path))
    found = {name: files for name in ("train", *HELD_OUT) if (files := _files_of(path, name))}
    if not found:
        other = ", ".join(SUFFIXES[1:])
        raise RewardlabError(f"{path} holds neither train.jsonl (or {other}) nor a dataset saved to disk{_others(path)}")
    return _train_and_test({name: _chained(files) for name, files in found.items()})


def _existing(source: str) -> Path:
    file = Path(source).expanduser()
    if file.is_file() and not _is_table(file):
        raise RewardlabError(
            f"cannot read {file}: problems are in a {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file (all but the last also "
            "compressed by gzip, as .jsonl.gz), or a folder"
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
        for suffix in (*SUFFIXES, *PACKED):
            if (file := place / f"{split}{suffix}").is_file():
                return [file]
            if parts := sorted(place.glob(f"{split}-*{suffix}")):
                return _all_parts(parts)
    return []


def _all_parts(parts: list[Path]) -> list[Path]:
    """The parts of a split. Raises RewardlabError where their names say that there are more."""
    wanted = {int(found[1]) for part in parts if (found := _OF.search(part.name.partition(".")[0]))}
    if wanted and wanted != {len(parts)}:
        most = max(wanted)
        raise RewardlabError(
            f"{parts[0].parent} holds {len(parts)} files like {parts[0].name}, whose names say that there are {most}: "
            "get the others, or give one file"
        )
    return parts


def _others(folder: Path) -> str:
    """What a folder without a split holds that could be given in its place: folders of splits, or files of rows."""
    inside = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    folders = [path.name for path in inside if path.is_dir() and any(_files_of(path, name) for name in ("train", *HELD_OUT))]
    found = folders or [path.name for path in inside if _is_table(path) and path.is_file()]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"; give one of what is in it: {', '.join(found[:SHOWN])}{more}" if found else ""


def _chained(files: Iterable[Path]) -> Iterator[Row]:
    return (row for file in files for row in _rows(file))


def _is_table(path: Path) -> bool:
    return path.name.endswith((*SUFFIXES, *PACKED))


def _kind(path: Path) -> str:
    """The suffix of a file, of a compressed one that of what is in it."""
    return Path(path.name.removesuffix(".gz")).suffix


def _rows(path: Path) -> Iterator[Row]:
    read = {".jsonl": _json_lines, ".json": _json, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}[_kind(path)]
    return read(path)


def _lines(path: Path, newline: str) -> Iterator[str]:
    """The lines of a text file in UTF-8.  newline: as `open` takes it."""
    open_file: Any = gzip.open if path.suffix == ".gz" else open
    try:
        # utf-8-sig: spreadsheets put a mark before the first column's name
        with open_file(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline=newline) as file:
            for number, line in enumerate(file, 1):
                # bytes that are not UTF-8 became surrogates, so that the line of the first of them is known
                if not line.isascii() and any("\udc80" <= c <= "\udcff" for c in line):
                    raise RewardlabError(f"{path}, line {number}: {not_utf8(open_file(path, 'rb').read(2))}")
                yield line
    except (gzip.BadGzipFile, EOFError, zlib.error) as e:
        raise RewardlabError(f"{path} is no whole gzip file: {e}") from e


def _json_lines(path: Path) -> Iterator[Row]:
    for number, line in enumerate(_lines(path, "\n"), 1):
        if not line.strip():
            continue
        place = f"{path}, line {number}"
        try:
            # as strictly as the data tools, which read the same files; only memory limits the length of a row
            yield place, _object(strict_json.parse(line.rstrip("\r\n"), longest=sys.maxsize), place)
        except ValueError as e:
            yield place, RewardlabError(f"{place}: broken JSON: {of_one_line(e)}")


def _json(path: Path) -> Iterator[Row]:
    text = "".join(_lines(path, "\n"))
    try:
        found = list(elements(_array(text, path)))
    except json.JSONDecodeError as e:
        hint = "; a file with one object a line is named .jsonl" if e.msg == "Extra data" else ""
        raise RewardlabError(f"{path}, line {e.lineno}: broken JSON: {of_one_line(e)}{hint}") from e
    for number, (_, row, why) in enumerate(found, 1):
        place = f"{path}, object {number}"
        yield place, RewardlabError(f"{place}: broken JSON: {why}") if why else _object(row, place)


def _array(text: str, path: Path) -> str:
    """The text of the rows of a JSON file: an array of objects, or an object that holds one such array, as {"data": [...]} does."""
    text = text.strip(" \t\r\n")
    if text.startswith("["):
        return text
    if not text.startswith("{"):
        raise RewardlabError(f"{path}: expected an array of objects, found {type(json.loads(text)).__name__}")
    within = list(members(text))
    if twice := named_twice(name for name, _ in within):
        raise RewardlabError(f"{path}: {twice}")
    arrays = [value for _, value in within if value.startswith("[") and _of_objects(value)]
    if len(arrays) != 1:
        raise RewardlabError(f"{path}: expected an array of objects, found dict")
    return arrays[0]


def _of_objects(array: str) -> bool:
    texts = [text for text, _, _ in elements(array)]
    return bool(texts) and all(text.startswith("{") for text in texts)


def _object(row: Any, place: str) -> Mapping[str, Any] | RewardlabError:
    if not isinstance(row, dict):
        return RewardlabError(f"{place}: expected an object with columns, found {type(row).__name__}")
    problem = halved(row)
    return RewardlabError(f"{place}: {problem}") if problem else row


def _csv(path: Path) -> Iterator[Row]:
    # the default limit, 131,072 characters, is less than a long solution
    csv.field_size_limit(2**31 - 1)
    header: list[str] = []
    reader = csv.reader(
        _lines(path, ""), delimiter="\t" if _kind(path) == ".tsv" else delimiter(lambda: _lines(path, "")), strict=True
    )
    while True:
        # a cell may hold line breaks: a row is named by its first line
        place = f"{path}, line {reader.line_num + 1}"
        try:
            cells = next(reader, None)
        except csv.Error as e:
            # where the next row begins is unknown
            raise RewardlabError(f"{place}: broken CSV: {e}") from e
        if cells is None:
            return
        if not header:
            if twice := named_twice(cells):
                raise RewardlabError(f"{place}: {twice}")
            header = cells
        elif cells and len(cells) != len(header):
            yield place, RewardlabError(f"{place}: {len(cells)} cells, but {len(header)} columns: {', '.join(header)}")
        elif cells:
            yield place, dict(zip(header, map(decoded, cells), strict=True))


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if twice := doubled(pq.read_schema(path)):
            raise RewardlabError(f"{path}: {twice}")
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as e:
        raise RewardlabError(f"{path} is not a parquet file that can be read: {e}") from e
    for number, row in enumerate(table.to_pylist(), 1):
        yield f"{path}, row {number}", unpadded(row)


def _named(data: Any, source: str) -> dict[str, Iterator[Row]]:
    """The rows of a dataset, or of its splits."""
    found = dict(data) if isinstance(data, dict) else {"train": data}
    chosen = _train_and_test({name: _numbered(rows, f"{source}, {name} row") for name, rows in found.items()})
    if not chosen:
        raise RewardlabError(f"{source} has no split 'train' or 'test'; it has: {', '.join(found)}")
    return chosen


def _numbered(rows: Any, place: str) -> Iterator[Row]:
    if holds_pictures(rows):
        return ((f"{place} {i}", row) for i, (_, row) in enumerate(stored_rows(rows), 1))
    return ((f"{place} {i}", unpadded(row)) for i, row in enumerate(rows, 1))
