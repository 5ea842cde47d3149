"""Summarise a run from its files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.report import curves
from rewardlab.report.diagnosis import findings
from rewardlab.runs.config import UNLIMITED
from rewardlab.runs.metrics import best_step, plain, step_of

Row = dict[str, Any]


def summarise(run_dir: Path | str) -> Row:
    """The results of a run, read from its files.

    method, task, model, seed, step, steps, finished, measure (what was evaluated);
    before, after, start, best: {"step", "value", "ci95", "n"} or None;
    gain: (difference, low, high) or None; reward and length: the last; tokens and seconds: the total; warnings.
    """
    run_dir = Path(run_dir)
    config, rows, final = read_config(run_dir), curves.read_metrics(run_dir), _json(run_dir / "summary.json")
    evals, name = _evals(rows), curves.measure(rows)
    # of the numbers as they are: rounded, two may be equal
    best = best_step({row["step"]: row.get(f"eval/{name}") for row in rows})
    # older versions kept another one of equal evaluations
    if (kept := step_of(run_dir / "best")) in {e["step"] for e in evals}:
        best = kept
    before = _measured(final.get("before"), evals[:1], name)
    # one evaluation alone is the one before training
    after = _measured(final.get("after"), evals[1:][-1:], name)
    seconds = [v for v in curves.points(rows, "seconds/step")[1] if math.isfinite(v)]
    return {
        **{k: config.get(k) for k in ("method", "task", "model", "seed")},
        # of a run that ends at its budget the number of steps is unknown
        "steps": None if config.get("steps") == UNLIMITED else config.get("steps"),
        "step": rows[-1]["step"] if rows else 0,
        "finished": bool(final),
        "measure": name,
        "before": before,
        "after": after,
        "start": evals[0] if evals else None,
        "best": next((e for e in evals if e["step"] == best), None),
        "gain": _gain(before, after),
        **{k: curves.last(rows, k) for k in ("reward", "length", "tokens")},
        "seconds": math.fsum(seconds) if seconds else None,
        "warnings": _warnings(rows, final),
    }


def _evals(rows: list[Row]) -> list[Row]:
    names = dict(zip(("value", "low", "high"), (f"eval/{curves.measure(rows)}", *curves.BOUNDS), strict=True))
    evals = [{k: plain(row.get(name)) for k, name in names.items()} | {"step": row["step"]} for row in rows]
    measured = [e for e in evals if e["value"] is not None]
    return [{"step": e["step"], "value": e["value"], "ci95": _pair([e["low"], e["high"]]), "n": None} for e in measured]


def _measured(summary: Any, evals: list[Row], name: str) -> Row | None:
    """A measurement from summary.json, or else from the metrics."""
    if not isinstance(summary, dict) or plain(summary.get(name)) is None:
        return evals[0] if evals else None
    return {"step": None, "n": summary.get("n"), "value": summary[name], "ci95": _pair(summary.get("ci95"))}


def _pair(bounds: Any) -> list[float] | None:
    is_complete = isinstance(bounds, list) and len(bounds) == 2 and all(plain(b) is not None for b in bounds)
    return bounds if is_complete else None


def _gain(before: Row | None, after: Row | None) -> tuple[float, float, float] | None:
    if before and after and before["ci95"] and after["ci95"]:
        return curves.difference(before, after)
    return None


def _warnings(rows: list[Row], final: Row) -> list[str]:
    """What went wrong, each with what to try, and what the run itself reported."""
    reported = final.get("problems")
    return [f"{finding.text} Try: {finding.remedy}." for finding in findings(rows)] + [
        str(p) for p in (reported if isinstance(reported, list) else [reported] if isinstance(reported, str) else [])
    ]


def read_config(run_dir: Path) -> Row:
    config = _json(run_dir / "config.json")
    if not config:
        raise RewardlabError(f"{run_dir} is not a run: no readable config.json; give the folder that `train` wrote")
    return config


def _json(path: Path) -> Row:
    try:
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
