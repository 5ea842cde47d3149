"""Select the recorded rollouts of a run that its report shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rewardlab.runs.metrics import plain
from rewardlab.runs.record import ROLLOUT

ROLLOUTS = 10_000  # on the page, over all runs and steps
TOKENS = 2_000_000  # of them, after cutting
STEPS = 4  # recorded steps on the page at least, including the first and the last
HEAD, TAIL = 500, 1500  # tokens kept of a longer trajectory

CHOSEN = ROLLOUT.append(pa.field("size", pa.int64()))
"""A recorded rollout, and the size of its group."""


def samples(run_dir: Path, rollouts: int = ROLLOUTS, tokens: int = TOKENS) -> pa.Table:
    """At most so many recorded rollouts and tokens, spread over the recorded steps, in complete groups, as CHOSEN.

    Columns that an older run did not record are null.
    """
    sizes = {path: _size(path) for path in sorted((run_dir / "rollouts").glob("step-*.parquet")) if path.stem[5:].isdigit()}
    recorded = [path for path, size in sizes.items() if size]
    if not recorded:
        return CHOSEN.empty_table()
    usual = sum(sizes.values()) / len(recorded)
    steps = min(len(recorded), max(STEPS, int(rollouts / usual)))
    chosen = spread(recorded, steps)
    return pa.concat_tables([_from_step(path, max(1, rollouts // len(chosen)), tokens // len(chosen)) for path in chosen])


def spread(items: Sequence[Any], n: int) -> list[Any]:
    """n evenly spaced items, including the first and the last."""
    return [items[round(i * (len(items) - 1) / max(1, n - 1))] for i in range(min(n, len(items)))]


def _size(path: Path) -> int:
    """The number of rows of a file; 0 if it cannot be read."""
    try:
        # the footer alone: files of a long run hold gigabytes
        return pq.read_metadata(path).num_rows
    except (OSError, pa.ArrowException):
        return 0


def _from_step(path: Path, rollouts: int, tokens: int) -> pa.Table:
    """Complete groups of one recorded step, as many as fit. Of a first group that is too large alone, rows of all rewards."""
    table = conform(pq.ParquetFile(path).read())
    # the file's name is right even where the column is missing
    table = table.set_column(0, "step", pa.repeat(int(path.stem[5:]), len(table)))
    length = [min(n or 0, HEAD + TAIL) for n in pc.list_value_length(table["tokens"]).to_pylist()]
    reward = [plain(r) for r in table["reward"].to_pylist()]
    groups: dict[Any, list[int]] = {}
    for row, group in enumerate(table["group"].to_pylist()):
        groups.setdefault(group, []).append(row)
    kept: list[int] = []
    for group in groups.values():
        cost = sum(length[row] for row in group)
        # the first group is always shown, cut down if need be; no later one is
        if kept and (len(group) > rollouts or cost > tokens):
            break
        # by rank of reward, evenly spaced: the best, the worst and those between are shown
        room = min(rollouts, max(1, int(tokens * len(group) / max(1, cost))))
        kept += group if len(group) <= room else spread(_ranked(group, reward), room)
        rollouts, tokens = rollouts - len(group), tokens - cost
    sizes = {row: len(group) for group in groups.values() for row in group}
    return table.take(kept).append_column(CHOSEN.field("size"), pa.array([sizes[row] for row in kept], pa.int64()))


def _ranked(rows: list[int], reward: list[float | None]) -> list[int]:
    """From the highest reward to the lowest; rows without a verdict come last."""

    def worth(row: int) -> float:
        value = reward[row]
        return -math.inf if value is None else value

    return sorted(rows, key=worth, reverse=True)


def conform(table: pa.Table) -> pa.Table:
    """The table with the columns of ROLLOUT; a column that is missing or of another type is null."""
    return pa.table({field.name: _column(table, field) for field in ROLLOUT}, ROLLOUT)


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    try:
        # unsafe: an older file may hold wider numbers, which may be rounded for a page
        return table[field.name].cast(field.type, safe=False)
    except (KeyError, pa.ArrowException):
        return pa.chunked_array([pa.nulls(len(table), field.type)])
