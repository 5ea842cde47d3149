"""The user's own problems: a JSONL or parquet file, a folder with train and test files, or a dataset saved to disk."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardlab.core import Message, Problem, Task
from rewardlab.errors import RewardlabError

from .sources import Shuffled, held_out

Row = tuple[str, Mapping[str, Any]]

SUFFIXES = (".jsonl", ".parquet")
ANSWER = "answer"
"""The column of the answers, if no other is named. It may be missing: then the problems have none."""
TEACHES = ({"chosen", "rejected"}, {"solution"})
"""Columns that preference and supervised methods learn from: rows that have them need no answer column."""


def records(
    *,
    path: str,
    prompt_column: str = "prompt",
    answer_column: str = ANSWER,
    system: str | None = None,
    test_share: float = 0.1,
    verifier: str = "final_answer",
    seed: int = 0,
) -> Task:
    """Problems from FILE.jsonl, FILE.parquet, or a folder: train.* (and test.*), or a dataset saved by `datasets`.

    A prompt is a text or a list of {"role", "content"}; `system` goes first, in place of one that the data has. All
    other columns go to `meta`. Without test data, `test_share` of the problems is held out by a hash of their prompts,
    so that equal prompts stay together. Problems of the test data are never trained on.
    Raises RewardlabError, with file and line, for whatever cannot be read.
    """
    if not 0 < test_share < 1:
        raise RewardlabError(f"records: test_share must lie between 0 and 1, not {test_share}")
    splits = {name: _problems(rows, prompt_column, answer_column, system) for name, rows in _splits(_existing(path)).items()}
    train, test = _apart(splits["train"], splits["test"], path) if "test" in splits else _divide(splits["train"], test_share, path)
    extra = dict.fromkeys(k for p in train for k in p.meta)
    return Task(
        name=Path(path).stem,
        train=Shuffled(train, seed),
        test=test,
        verifier=verifier,
        about=f"{len(train)} problems to train on and {len(test)} to test, from {path}",
        columns=("prompt", *(["answer"] if any(p.answer is not None for p in train) else []), *extra),
    )


def _existing(path: str) -> Path:
    file = Path(path).expanduser()
    if file.is_file() and file.suffix not in SUFFIXES:
        raise RewardlabError(f"cannot read {file}: a task is a {' or '.join(SUFFIXES)} file, or a folder")
    if file.exists():
        return file
    near = difflib.get_close_matches(file.name, [p.name for p in file.parent.glob("*")], n=1)
    raise RewardlabError(f"there is no file or folder {file}" + (f"; did you mean {near[0]}?" if near else ""))


def _splits(path: Path) -> dict[str, Iterator[Row]]:
    if path.is_file():
        return {"train": _rows(path)}
    if (path / "dataset_info.json").exists() or (path / "dataset_dict.json").exists():
        return _saved(path)
    splits = {name: _rows(file) for name in ("train", "test") if (file := _file_in(path, name))}
    if "train" not in splits:
        raise RewardlabError(f"{path} holds neither train.jsonl nor train.parquet, nor a dataset saved to disk")
    return splits


def _file_in(folder: Path, name: str) -> Path | None:
    return next((file for suffix in SUFFIXES if (file := folder / f"{name}{suffix}").is_file()), None)


def _rows(path: Path) -> Iterator[Row]:
    return _jsonl(path) if path.suffix == ".jsonl" else _parquet(path)


def _jsonl(path: Path) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            place = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except ValueError as e:
                raise RewardlabError(f"{place}: broken JSON: {e}") from e
            if not isinstance(row, dict):
                raise RewardlabError(f"{place}: expected an object with columns, found {type(row).__name__}")
            yield place, row


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as e:
        raise RewardlabError(f"{path} is not a parquet file that can be read: {e}") from e
    for number, row in enumerate(table.to_pylist(), 1):
        yield f"{path}, row {number}", row


def _saved(path: Path) -> dict[str, Iterator[Row]]:
    try:
        import datasets
    except ImportError as e:
        raise RewardlabError(f"{path} is a saved dataset; to read it: pip install 'rewardlab[data]'") from e
    try:
        data = datasets.load_from_disk(str(path))
    except Exception as e:
        raise RewardlabError(f"cannot load the dataset in {path}: {e}") from e
    splits = {"train": data} if isinstance(data, datasets.Dataset) else dict(data)
    if "train" not in splits:
        raise RewardlabError(f"the dataset in {path} has no split 'train'; it has: {', '.join(splits)}")
    test = next((splits[name] for name in ("test", "validation") if name in splits), None)
    used = {"train": splits["train"]} | ({} if test is None else {"test": test})
    return {k: ((f"{path}, {k} row {i}", row) for i, row in enumerate(rows, 1)) for k, rows in used.items()}


def _problems(rows: Iterator[Row], prompt_column: str, answer_column: str, system: str | None) -> list[Problem]:
    problems: list[Problem] = []
    has_answers = True
    for place, row in rows:
        if not problems:
            # data of prompts alone is welcome too: whether the answers are needed depends on the reward
            named = answer_column != ANSWER and not any(columns <= row.keys() for columns in TEACHES)
            has_answers = answer_column in row or named
        prompt = _prompt(_column(row, prompt_column, place), place, system)
        answer = _answer(_column(row, answer_column, place), answer_column, place) if has_answers else None
        meta = {k: _last_text(v) if k in ("chosen", "rejected", "solution") else v for k, v in row.items()}
        problems.append(Problem(prompt, answer, {k: v for k, v in meta.items() if k not in (prompt_column, answer_column)}))
    return problems


def _column(row: Mapping[str, Any], name: str, place: str) -> Any:
    if name in row:
        return row[name]
    near = difflib.get_close_matches(name, row, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise RewardlabError(
        f"{place}: no column {name!r}; {hint}The columns are: {', '.join(row) or 'none'}. "
        "Name yours with --prompt-column and --answer-column"
    )


def _prompt(value: Any, place: str, system: str | None) -> tuple[Message, ...]:
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list) or not all(_is_message(m) for m in value):
        raise RewardlabError(f"{place}: a prompt is a text or a list of {{'role', 'content'}}, not {str(value)[:80]!r}")
    messages = [Message(m["role"], m["content"]) for m in value]
    conversation = [m for m in messages if m.role != "system"]
    if not conversation or not conversation[-1].text.strip():
        raise RewardlabError(f"{place}: the prompt is empty")
    return tuple(messages) if system is None else (Message("system", system), *conversation)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(value.get("content"), str)


def _answer(value: Any, column: str, place: str) -> Any:
    # value != value: NaN, which is how data frames write a missing value
    if value is None or value != value or (isinstance(value, str | list | dict) and not value) or not str(value).strip():
        raise RewardlabError(f"{place}: the problem has no answer (column {column!r} is {value!r})")
    return value


def _last_text(value: Any) -> Any:
    """The reply at the end of a conversation, for pairs that are written as whole conversations."""
    return value[-1]["content"] if isinstance(value, list) and value and _is_message(value[-1]) else value


def _divide(problems: list[Problem], share: float, path: str) -> tuple[list[Problem], list[Problem]]:
    """Hold a share out by content: at least one problem on either side."""
    keys = {p.key: held_out(p, share) for p in problems}
    if not problems:
        raise RewardlabError(f"{path} holds no problems")
    if len(keys) < 2:
        raise RewardlabError(f"{path}: at least two different prompts are needed, one of them to test on")
    if not any(keys.values()):
        # the share may be too small for any hash to fall below it: move one problem, always the same
        keys[min(keys)] = True
    if all(keys.values()):
        keys[max(keys)] = False
    return [p for p in problems if not keys[p.key]], [p for p in problems if keys[p.key]]


def _apart(train: list[Problem], test: list[Problem], path: str) -> tuple[list[Problem], list[Problem]]:
    held_out_keys = {p.key for p in test}
    unseen = [p for p in train if p.key not in held_out_keys]
    if not test or not unseen:
        what = "no test problems" if not test else "no training problem" + (" that is not a test problem too" if train else "s")
        raise RewardlabError(f"{path} holds {what}")
    return unseen, test
