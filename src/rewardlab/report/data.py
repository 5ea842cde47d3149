"""Pack rollouts for a page: compact enough for ten thousand of them, and unpacked by the browser.

The format is base64(gzip(n, header, arrays)). n is the header's length, as four bytes, little-endian; the header is JSON; the
arrays that it names follow, each with one entry per token of each rollout. Within an array the low bytes of all entries come
first, then the next bytes, since similar bytes side by side compress better.

ids         the token, an index into `vocabulary`
mask        1 where a policy decided
credit      in 1/32767 of the rollout's largest (`credit_of`)
others      log-prob, its change by the update, and entropy, in thousandths of a nat

A missing number is -32768.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rewardlab.runs.metrics import plain
from rewardlab.runs.samples import HEAD, TAIL

MISSING = -32768
FULL = 32767
NATS = 1000.0


def packed(tables: Sequence[pa.Table]) -> str:
    """The chosen rollouts of each run as one text."""
    table = pa.concat_tables(tables).combine_chunks()
    run_of_rollout = np.repeat(np.arange(len(tables)), [len(t) for t in tables])
    cut = Cut(table)
    words = _lists(table, "tokens").values.fill_null("").dictionary_encode()
    credit, largest = _credit(cut, table)
    arrays: dict[str, np.ndarray] = {
        "ids": cut.column(_numpy(words.indices, np.uint32), cut.length).astype(np.uint32),
        "mask": (cut.of(table, "mask") == 1).astype(np.uint8),
        "credit": credit,
        **_nats(cut, table),
    }
    # tokens of the environment have no credit
    arrays["credit"][arrays["mask"] == 0] = MISSING
    groups, group_of_rollout = _groups(table, run_of_rollout)
    header = {
        "head": HEAD,
        "nats": NATS,
        "vocabulary": words.dictionary.to_pylist(),
        "groups": groups,
        "rollouts": _rollouts(table, group_of_rollout),
        "length": cut.kept.tolist(),
        "gap": cut.gap.tolist(),
        "credit_of": [plain(x, 5) for x in largest.tolist()],
        "arrays": [[name, array.dtype.name, len(array)] for name, array in arrays.items()],
    }
    text = json.dumps(clean(header), separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    parts = [len(text).to_bytes(4, "little"), text, *map(_by_byte, arrays.values())]
    return base64.b64encode(gzip.compress(b"".join(parts), 6, mtime=0)).decode()


def _by_byte(array: np.ndarray) -> bytes:
    little = array.astype(array.dtype.newbyteorder("<"))
    # (entries, bytes) transposed: all low bytes first
    return little.view(np.uint8).reshape(-1, array.itemsize).T.tobytes()


class Cut:
    """Which tokens of each trajectory are on the page: all, or the first HEAD and the last TAIL."""

    def __init__(self, table: pa.Table):
        self.length = _lengths(table, "tokens")
        self.gap = np.maximum(0, self.length - HEAD - TAIL)
        self.kept = self.length - self.gap
        self.row = np.repeat(np.arange(len(table)), self.kept)
        # position among the kept tokens of its own rollout
        within = np.arange(len(self.row)) - np.repeat(np.cumsum(self.kept) - self.kept, self.kept)
        self.position = within + np.where(within >= HEAD, self.gap[self.row], 0)

    def of(self, table: pa.Table, name: str) -> np.ndarray:
        """A column of lists, flat, NaN where a list is too short or holds a null."""
        return self.column(_numpy(_lists(table, name).values.cast(pa.float64()), np.float64), _lengths(table, name))

    def column(self, flat: np.ndarray, length: np.ndarray) -> np.ndarray:
        if not len(flat):
            return np.full(len(self.row), np.nan)
        start = np.cumsum(length) - length
        # clipped to stay within the array; `where` discards positions beyond the list's own end
        source = np.minimum(start[self.row] + self.position, len(flat) - 1)
        return np.where(self.position < length[self.row], flat[source], np.nan)


def _lists(table: pa.Table, name: str) -> pa.ListArray:
    """A column of lists without nulls among them, so that lengths and values belong together."""
    column = table[name].combine_chunks()
    # a null list has no values but may have an offset: rebuild the offsets from the lengths
    lengths = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, column.flatten())


def _lengths(table: pa.Table, name: str) -> np.ndarray:
    return pc.list_value_length(table[name]).fill_null(0).to_numpy().astype(np.int64)


def _numpy(array: pa.Array, kind: Any) -> np.ndarray:
    return array.to_numpy(zero_copy_only=False).astype(kind)


def _nats(cut: Cut, table: pa.Table) -> dict[str, np.ndarray]:
    """The columns in nats; columns without recorded values are left out."""
    old, new = cut.of(table, "logprob"), cut.of(table, "new_logprob")
    columns = {"logprob": old, "ratio": new - old, "entropy": cut.of(table, "entropy")}
    return {name: _as_int16(values * NATS) for name, values in columns.items() if np.isfinite(values).any() and len(values)}


def _credit(cut: Cut, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Credit relative to each rollout's largest, and these largest values (B,)."""
    values = cut.of(table, "credit")
    largest = np.zeros(len(table))
    # maximum.at, since plain indexing would keep only one of the tokens of each rollout
    np.maximum.at(largest, cut.row, np.nan_to_num(np.abs(values), nan=0.0, posinf=0.0))
    # a rollout without credit is divided by 1, not by 0
    scale = np.where(largest > 0, largest, 1.0)[cut.row]
    return _as_int16(values / scale * FULL), largest


def _as_int16(values: np.ndarray) -> np.ndarray:
    finite = np.isfinite(values)
    return np.where(finite, np.clip(np.rint(np.where(finite, values, 0.0)), -FULL, FULL), MISSING).astype(np.int16)


def _groups(table: pa.Table, run_of_rollout: np.ndarray) -> tuple[list[dict[str, Any]], list[int]]:
    """The distinct groups, and the index of each rollout's group."""
    indices: dict[tuple[Any, ...], int] = {}
    groups: list[dict[str, Any]] = []
    group_indices = []
    columns = ("step", "group", "question", "answer", "size")
    for run, *values in zip(run_of_rollout.tolist(), *(table[c].to_pylist() for c in columns), strict=True):
        key = (run, *values[:2])
        if key not in indices:
            indices[key] = len(groups)
            groups.append({"run": run, **dict(zip(columns, values, strict=True))})
        group_indices.append(indices[key])
    return groups, group_indices


def _rollouts(table: pa.Table, group_of_rollout: list[int]) -> list[dict[str, Any]]:
    """The data of each rollout besides its tokens, without empty entries."""
    plain_text = ("stop", "why", "extracted")
    nested = ("terms", "weights", "step_rewards")
    names = ("row", "reward", "truth", *plain_text, *nested, "path", "turns", "reply", "tokens")
    rollouts = []
    for g, *values in zip(group_of_rollout, *(_column(table, name) for name in names), strict=True):
        row = dict(zip(names, values, strict=True))
        row |= {name: _object(row[name]) for name in nested} | {name: plain(row[name]) for name in ("reward", "truth")}
        row["turns"] = [[t["author"], t["tokens"] or 0, t["reward"]] for t in row["turns"] or [] if t]
        if row.pop("tokens"):
            del row["reply"]
        rollouts.append({"group": g} | {k: v for k, v in row.items() if v not in (None, "", [], {})})
    return rollouts


def _column(table: pa.Table, name: str) -> list[Any]:
    return _lengths(table, name).tolist() if name == "tokens" else table[name].to_pylist()


def _object(text: str | None) -> dict[str, Any]:
    try:
        data = json.loads(text or "{}")
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def clean(data: Any) -> Any:
    """Nested data with NaN and infinities removed, which JSON does not allow."""
    if isinstance(data, dict):
        return {str(k): clean(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [clean(v) for v in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data
