"""Recorded rollouts of a run, chosen and trimmed for a page."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .curves import plain

Row = dict[str, Any]

SHOWN = 64  # rollouts on the page, over all steps shown
STEPS = 4  # recorded steps on the page, the earliest and the newest among them
HEAD, TAIL = 500, 1500  # tokens kept of a longer trajectory


def samples(run_dir: Path) -> list[Row]:
    """Recorded rollouts of a few steps from the earliest to the newest, in whole groups as far as the page has room."""
    recorded = [path for path in sorted((run_dir / "rollouts").glob("step-*.parquet")) if _readable(path)]
    kept = sorted({round(i * (len(recorded) - 1) / (STEPS - 1)) for i in range(STEPS)}) if recorded else []
    return [_sample(recorded[i], SHOWN // len(kept)) for i in kept]


def _readable(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return path.stem[5:].isdigit() and pq.read_metadata(path).num_rows > 0
    except (OSError, pa.ArrowException):
        return False


def _sample(path: Path, room: int) -> Row:
    import pyarrow.parquet as pq

    groups: dict[Any, list[Row]] = {}
    rows = pq.ParquetFile(path).read().to_pylist()
    for row in rows:
        groups.setdefault(row.get("group"), []).append(row)
    shown: list[Row] = []
    for group in groups.values():
        if shown and len(group) > room:
            break
        shown.append(_group(group, room))
        room -= len(group)
    step = int(path.stem[5:])
    return {"step": step, "total": len(rows), "scale": _scale(shown), "groups": shown}


def _group(rows: list[Row], room: int) -> Row:
    """A problem and its rollouts; of a group too large for the page, some spread evenly from the best to the worst."""
    kept = rows
    if len(rows) > room:
        ranked = sorted(rows, key=_worth, reverse=True)
        kept = [ranked[round(i * (len(rows) - 1) / max(1, room - 1))] for i in range(room)]
    paid = [r["reward"] for r in rows if plain(r.get("reward")) is not None]
    return {
        "question": rows[0].get("question") or "",
        "answer": rows[0].get("answer") or "",
        "size": len(rows),
        "mean": sum(paid) / len(paid) if paid else None,
        "rows": [_rollout(r) for r in kept],
    }


def _worth(row: Row) -> float:
    """For ranking; no verdict comes last."""
    reward = plain(row.get("reward"))
    return -math.inf if reward is None else reward


def _rollout(row: Row) -> Row:
    tokens = row.get("tokens") or []
    gap = max(0, len(tokens) - HEAD - TAIL)

    def cut(name: str) -> list:
        values = row.get(name) or []
        return [*values[:HEAD], *values[-TAIL:]] if gap else values

    numbers = {k: [plain(v, 4) for v in cut(k)] for k in ("credit", "logprob")}
    text = {k: row.get(k) or "" for k in ("reply", "stop", "why")}
    totals = {k: plain(row.get(k)) for k in ("reward", "truth")}
    if tokens:
        text["reply"] = ""
    pieces, mask = [t or "" for t in cut("tokens")], [int(bool(m)) for m in cut("mask")]
    shape = {"tokens": pieces, "mask": mask, "gap": gap, "head": HEAD}
    return {"row": row.get("row"), **totals, **text, "terms": _terms(row.get("terms")), **shape, **numbers}


def _terms(text: Any) -> Row:
    try:
        terms = json.loads(text or "{}")
    except (ValueError, TypeError):
        return {}
    return terms if isinstance(terms, dict) else {}


def _scale(groups: list[Row]) -> float:
    """The credit drawn in full colour: near the largest, so that one outlier does not bleach the rest."""
    rows = [row for group in groups for row in group["rows"]]
    sizes = sorted(abs(c) for r in rows for c, own in zip(r["credit"], r["mask"], strict=False) if own and c)
    return sizes[int(0.99 * (len(sizes) - 1))] if sizes else 0.0
