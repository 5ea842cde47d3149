"""Judge files of replies with a verifier, on all cores."""

from __future__ import annotations

import functools
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.errors import RewardlabError, unknown
from rewardlab.processes.pool import Done, Workers
from rewardlab.util.files import new_file
from rewardlab.util.progress import Bar
from rewardlab.verifiers.contract import Pair, Verifier

CHUNK = 32
"""Rows per call of a worker process."""
ALONE = 5.0
"""Seconds for which this process judges alone: worker processes take about as long to start."""

Row = dict[str, Any]


def verify_file(kind: str, source: Path | str, out: Path | str, settings: Mapping[str, Any] | None = None) -> Row:
    """Write the rows of `source` (JSON lines with "response" and "answer") to `out`, with "correct", "extracted" and "why".

    A line that cannot be read, or lacks a column, is reported by its number and skipped. `out` is written completely or not at all.
    Returns how many rows are right, wrong and without a verdict, and rows per second.
    """
    source, out = Path(source), Path(out)
    values = {name.replace("-", "_"): registry.parse_value(v) if isinstance(v, str) else v for name, v in (settings or {}).items()}
    # made once before any file is opened, so that a wrong name or setting is refused at once
    verifier(kind, values)
    if not source.is_file():
        raise RewardlabError(f"there is no file {source}")
    if not out.parent.is_dir():
        raise RewardlabError(f"there is no folder {out.parent} to write {out.name} into")
    skipped: list[str] = []
    counts: Counter[bool | None] = Counter()
    started = time.perf_counter()
    with open(source, "rb") as file:
        lines = sum(1 for _ in file)
    with new_file(out) as temporary, open(temporary, "w", encoding="utf-8") as file, Bar(f"verify {kind}", lines) as bar:
        for row in _judge_all(kind, values, _rows(source, skipped)):
            counts[row["correct"]] += 1
            # a reply may hold half of a surrogate pair, which UTF-8 cannot encode: it becomes a question mark
            file.write(json.dumps(row, ensure_ascii=False).encode("utf-8", "replace").decode() + "\n")
            bar.advance()
    rows = counts.total()
    return {
        "verifier": kind, "rows": rows, "right": counts[True], "wrong": counts[False], "no_verdict": counts[None],
        "rows_per_second": round(rows / (time.perf_counter() - started), 1), "out": str(out), "passed_over": skipped,
    }  # fmt: skip


def verifier(kind: str, settings: Mapping[str, Any] | None = None) -> Verifier:
    """The verifier of this name, with its settings."""
    known = registry.verifiers()
    if kind not in known:
        raise unknown("verifier", kind, known)
    return registry.part("reward", kind, **(settings or {}))


def judge(kind: str, settings: Mapping[str, Any], rows: list[Row]) -> list[Row]:
    """The rows with their verdicts. Their other columns are the problem's data."""
    pairs = [Pair(row["response"], row["answer"], str(row.get("prompt", "")), row) for row in rows]
    # settings travel as text, since the keys of a cache must be hashable
    verdicts = _cached_verifier(kind, json.dumps(settings)).check_all(pairs)
    return [row | {"correct": v.correct, "extracted": v.extracted, "why": v.why} for row, v in zip(rows, verdicts, strict=True)]


@functools.lru_cache(maxsize=8)
def _cached_verifier(kind: str, settings: str) -> Verifier:
    """The verifier, loaded once per process: finding a part by its name reads all files of its folder."""
    return verifier(kind, json.loads(settings))


def _judge_all(kind: str, settings: Mapping[str, Any], rows: Iterator[Row]) -> Iterator[Row]:
    """The rows with their verdicts, in order: the first ones judged in this process, the others in worker processes."""
    cores, started = len(os.sched_getaffinity(0)), time.monotonic()
    chunks = _chunks(rows, CHUNK)
    for chunk in chunks:
        yield from judge(kind, settings, chunk)
        if cores > 1 and time.monotonic() - started > ALONE:
            break
    # a chunk has no time limit, since each verifier limits the time of every reply
    pool = Workers("rewardlab.api.verify:judge", seconds=1e6, memory=-1, pinned=True)
    try:
        # some chunks per core at a time: no core waits long, and memory does not grow with the file
        for block in _chunks(chunks, 16 * cores):
            for chunk, result in zip(block, pool.map([(kind, settings, chunk) for chunk in block]), strict=True):
                yield from result.value if isinstance(result, Done) else [_unjudged(row, result.why) for row in chunk]
    finally:
        pool.close()


def _unjudged(row: Row, why: str) -> Row:
    return row | {"correct": None, "extracted": "", "why": f"the verifier failed: {why}"}


def _rows(source: Path, skipped: list[str]) -> Iterator[Row]:
    """The rows of a file; lines that cannot be judged are described in `skipped` instead."""
    with open(source, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            problem = None
            try:
                row = json.loads(line)
            except ValueError as e:
                problem = f"not JSON: {e}"
            else:
                if not isinstance(row, dict):
                    problem = "not a JSON object"
                elif missing := [name for name in ("response", "answer") if name not in row]:
                    problem = f"no column {' and no column '.join(missing)}"
            if problem:
                skipped.append(f"line {number}: {problem}")
            else:
                yield row


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    items = iter(items)
    while chunk := list(islice(items, size)):
        yield chunk
