"""Files of solutions with labelled steps: our own format, and those in which others publish theirs.

| format | columns | what a label is |
| --- | --- | --- |
| rewardlab | prompt, steps, labels (right, answer) | a number from 0 to 1, or null |
| prm800k | question, label (openai/prm800k, a line a solution) | a rating 1, 0 or -1: see `published.prm800k` |
| math-shepherd | input, label (peiyi9979/Math-Shepherd) | + or - where `input` has ки |
| processbench | problem (or prompt), steps, label (Qwen/ProcessBench) | the index of the first wrong step, or -1 |
| prmbench | modified_question, modified_process, error_steps (ssmisya/PRMBench) | the numbers of wrong steps, from 1 |
| trl | prompt, completions, labels (TRL's stepwise supervision) | true or false |
| completion, response | prompt, and a whole reply in the column of that name (answer) | none: its steps are to be labelled |

Files are JSON lines, .csv or .parquet, or a .json file with a list of rows; JSON may be compressed (.jsonl.gz); a table holds lists
as JSON in a cell. All columns
that mean nothing here are kept in `meta`, and written again in the same format. A label from 0 to 1 is written to the published
formats as right from `threshold` up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError, unknown

from . import published
from .entries import Entry
from .files import TABLES, Row, encoded, output, read
from .in_memory import GivenRows, is_rows
from .solutions import Solution, row_of, solution_of

AUTO = "auto"
REPLIES = ("completion", "response")
"""Formats of whole replies, named by their column."""
THRESHOLD = 0.5
"""The same as that of `Solution.first_error`. Math-Shepherd's own labels are + where any continuation was right: a threshold just
above 0."""


@dataclass(frozen=True)
class Format:
    """columns: by which a row is recognised.  read: a row as the solution, and further ones that it holds.  write: a solution as a
    row, with the threshold and the number of the row. Both raise ValueError, with the reason."""

    columns: tuple[str, ...]
    read: Callable[..., list[Solution]]
    write: Callable[[Solution, float, int], Row]


FORMATS: dict[str, Format] = {
    "rewardlab": Format(("prompt", "steps"), lambda row: [solution_of(row)], lambda solution, threshold, number: row_of(solution)),
    "processbench": Format(("problem", "steps", "label"), published.from_processbench, published.to_processbench),
    "math-shepherd": Format(("input", "label"), published.from_math_shepherd, published.to_math_shepherd),
    "prm800k": Format(("question", "label"), published.from_prm800k, published.to_prm800k),
    "prmbench": Format(("modified_process", "error_steps"), published.from_prmbench, published.to_prmbench),
    "trl": Format(("prompt", "completions", "labels"), published.from_trl, published.to_trl),
    **{name: Format(("prompt", name), partial(published.from_reply, column=name), published.to_reply) for name in REPLIES},
}


CELLS = {
    "rewardlab": ("steps", "labels"), "processbench": ("steps",), "trl": ("completions", "labels"),
    "prm800k": ("question", "label"), "prmbench": ("modified_process", "original_process", "error_steps"),
}  # fmt: skip
"""Columns of lists and objects, which a table holds as JSON."""
TRUTHS = ("true", "false")
WRITTEN = tuple(name for name in FORMATS if name not in REPLIES)
"""The formats that hold labels, in which solutions can be written."""


def check_format(name: str, known: Iterable[str] = FORMATS) -> None:
    """Raise RewardlabError for a format that does not exist."""
    if name not in known:
        raise unknown("format of solutions", name, known)


def format_of(row: Row) -> str | None:
    """The format that a row's columns are those of; None if there is none. One of ProcessBench is known by its index of the first
    wrong step, whatever its problem is called."""
    if {"prompt", "steps", "label"} <= row.keys() and "labels" not in row and published.index_in(row["label"]) is not None:
        return "processbench"
    return next((name for name, of in FORMATS.items() if all(column in row for column in of.columns)), None)


def read_solutions(
    path: Any, format: str = AUTO, *, alternatives: bool = False, broken: list[str] | None = None,
    splitter: str = "newline", passed_over: list[int] | None = None,
) -> Iterator[Solution]:  # fmt: skip
    """The solutions of a file, or of rows in its place (`in_memory.py`), in order.

    format: one of FORMATS; "auto" recognises it by the columns of the first row.  alternatives: also the other solutions that a
    row holds: in PRM800K each rated step that was not gone on with, after the steps before it; in PRMBench the process before
    errors were put into it.  broken: takes a line for each row that cannot be read, with its place and the reason, and the row is
    passed over; None: it raises RewardlabError.  splitter: where the steps of whole replies end.  passed_over: takes, for each row,
    how many alternatives it holds that were not asked for.
    """
    if format != AUTO:
        check_format(format)
    named = str(path) if isinstance(path, str | Path) else "rows"
    for entry in _entries(path):
        if entry.blank:
            continue
        try:
            if entry.row is None:
                raise ValueError(entry.why)
            if format == AUTO:
                format = _recognised(named, entry.row)
            how = {"splitter": splitter} if format in REPLIES else {}
            found = FORMATS[format].read(from_cells(entry.row, format), **how)
        except ValueError as e:
            why = f"{entry.place}: {e}"
        except RewardlabError as e:
            if format == AUTO:
                raise
            why = f"{entry.place}: {e}"
        else:
            yield from found if alternatives else found[:1]
            if passed_over is not None and not alternatives:
                passed_over.append(len(found) - 1)
            continue
        if broken is None:
            raise RewardlabError(f"{named}, {why}")
        broken.append(why)


def solutions_in(data: Any, format: str = AUTO, **how: Any) -> list[Solution]:
    """Solutions as they are, or those of a file or of rows, as `read_solutions` reads them."""
    if isinstance(data, list | tuple) and data and all(isinstance(s, Solution) for s in data):
        return list(data)
    return list(read_solutions(data, format, **how))


def name_of(data: Any) -> str:
    """How messages name where solutions come from."""
    return str(data) if isinstance(data, str | Path) else "solutions"


def _entries(source: Any) -> Iterator[Entry]:
    """What a file holds, or the rows that are given in Python in its place."""
    if not isinstance(source, GivenRows) and not is_rows(source):
        yield from read(source)
        return
    for rows in GivenRows.of(source).splits().values():
        for place, row in rows:
            if isinstance(row, RewardlabError):
                yield Entry(place, None, why=str(row).removeprefix(f"{place}: "))
            else:
                yield Entry(place, dict(row))


def from_cells(row: Row, format: str) -> Row:
    """The row with what a table writes as a text in a cell: lists and objects as JSON, true and false, and nothing."""
    read = {name: _decoded(row[name]) for name in CELLS.get(format, ()) if isinstance(row.get(name), str)}
    read |= {name: None for name in ("answer", "right", "final_answer_correct") if row.get(name) == ""}
    flags = {name: row.get(name) for name in ("right", "final_answer_correct")}
    read |= {name: said.lower() == "true" for name, said in flags.items() if isinstance(said, str) and said.lower() in TRUTHS}
    return {**row, **read} if read else row


def _decoded(cell: str) -> Any:
    if not cell.strip():
        return None
    if cell.lstrip()[:1] not in ("[", "{"):
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def row_in(solution: Solution, format: str, threshold: float = THRESHOLD, number: int = 0) -> Row:
    """A solution as a row of a format.  number: of the row in its file, for formats whose rows have an id.

    Raises RewardlabError for one that the format cannot hold, such as a step without a label in the middle.
    """
    check_format(format, WRITTEN)
    try:
        return FORMATS[format].write(solution, threshold, number)
    except ValueError as e:
        raise RewardlabError(f"{format} cannot hold solution {number}: {e}") from None


def write_solutions(
    path: Path | str, solutions: Iterable[Solution], format: str = "rewardlab", *, threshold: float = THRESHOLD,
    unfit: list[str] | None = None,
) -> int:  # fmt: skip
    """Write solutions as JSON lines ("-": standard output), and return how many; the file is replaced whole or not at all.

    threshold: the least label of a right step, in formats where a step is either right or wrong.  unfit: takes a line for each
    solution that the format cannot hold; None: it raises RewardlabError.
    """
    check_format(format, WRITTEN)
    if Path(path).suffix.lower() in (*TABLES, ".json"):
        raise RewardlabError(f"{path}: solutions are written as JSON lines; give the name of a .jsonl file")
    written = 0
    with output(path) as file:
        for number, solution in enumerate(solutions):
            try:
                row = row_in(solution, format, threshold, number)
            except RewardlabError as e:
                if unfit is None:
                    raise
                unfit.append(str(e))
            else:
                file.write(encoded(row))
                written += 1
    return written


def _recognised(path: Path | str, row: Row) -> str:
    name = format_of(row)
    if name is None:
        known = "; ".join(f"{name}: {', '.join(of.columns)}" for name, of in FORMATS.items())
        raise RewardlabError(f"{path} has the columns {', '.join(row)}, which is no format that is known here ({known})")
    return name
