"""The report of a run: one HTML file that opens anywhere, offline.

What a model wrote is taken for hostile. It is escaped in HTML, it travels to the script as JSON in which no tag can
open, the script sets it as text only, and the page's content security policy runs no script but its own two (named by
their hashes) and loads nothing from anywhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

from rewardlab.core.errors import RewardlabError

from ..kit.files import new_file
from . import curves
from .samples import samples

Row = dict[str, Any]


def write_report(run_dir: Path | str) -> Path:
    """Write `report.html` into a run's folder, whole or not at all, and return its path.

    Reads config.json, metrics.jsonl, rollouts/*.parquet and summary.json; all but the first may be missing or broken
    off. Raises RewardlabError if the folder is not a run.
    """
    run_dir = Path(run_dir)
    page = _page(_config(run_dir), summarise(run_dir), curves.read_metrics(run_dir), samples(run_dir))
    with new_file(run_dir / "report.html") as new:
        new.write_text(page, encoding="utf-8", errors="replace")
    return run_dir / "report.html"


def summarise(run_dir: Path | str) -> Row:
    """What a run came to, from its files alone.

    method, task, model, seed, step, steps, finished, measure (what was evaluated);
    before, after, best: {"step", "value", "ci95", "n"} or None;
    gain: (difference, low, high) or None; reward and length: the last; tokens and seconds: the total; warnings.
    """
    run_dir = Path(run_dir)
    config, rows, done = _config(run_dir), curves.read_metrics(run_dir), _json(run_dir / "summary.json")
    evals, name = _evals(rows), curves.measure(rows)
    before = _measured(done.get("before"), evals[:1], name)
    after = _measured(done.get("after"), evals[1:][-1:], name)
    seconds = [v for v in curves.points(rows, "seconds/step")[1] if math.isfinite(v)]
    return {
        **{k: config.get(k) for k in ("method", "task", "model", "seed", "steps")},
        "step": rows[-1]["step"] if rows else 0,
        "finished": bool(done),
        "measure": name,
        "before": before,
        "after": after,
        "best": max(evals, key=lambda e: e["value"], default=None),
        "gain": _gain(before, after),
        **{k: curves.last(rows, k) for k in ("reward", "length", "tokens")},
        "seconds": math.fsum(seconds) if seconds else None,
        "warnings": _warnings(rows, done),
    }


# -- what a run came to ------------------------------------------------------------------------------------------------


def _evals(rows: list[Row]) -> list[Row]:
    names = dict(zip(("value", "low", "high"), (f"eval/{curves.measure(rows)}", *curves.BOUNDS), strict=True))
    found = [{k: curves.plain(row.get(name)) for k, name in names.items()} | {"step": row["step"]} for row in rows]
    known = [e for e in found if e["value"] is not None]
    return [{"step": e["step"], "value": e["value"], "ci95": _pair([e["low"], e["high"]]), "n": None} for e in known]


def _measured(summary: Any, evals: list[Row], name: str) -> Row | None:
    """What the summary says, else what the metrics say."""
    if not isinstance(summary, dict) or curves.plain(summary.get(name)) is None:
        return evals[0] if evals else None
    return {"step": None, "n": summary.get("n"), "value": summary[name], "ci95": _pair(summary.get("ci95"))}


def _pair(bounds: Any) -> list[float] | None:
    whole = isinstance(bounds, list) and len(bounds) == 2 and all(curves.plain(b) is not None for b in bounds)
    return bounds if whole else None


def _gain(before: Row | None, after: Row | None) -> tuple[float, float, float] | None:
    if before and after and before["ci95"] and after["ci95"]:
        return curves.difference(before, after)
    return None


def _warnings(rows: list[Row], done: Row) -> list[str]:
    found = [f"{s['text']} The policy may be exploiting the reward." for s in curves.divergence(rows)]
    for name, steps in curves.not_finite(rows).items():
        where = ", ".join(map(str, steps[:5])) + (", …" if len(steps) > 5 else "")
        found.append(f"{name} was not a finite number at step{'s' * (len(steps) > 1)} {where}.")
    missing = sum(v for v in curves.points(rows, "missing")[1] if math.isfinite(v))
    if missing:
        found.append(f"{missing:g} rollouts had no verdict: the reward failed there, and they were left out.")
    said = done.get("problems")
    return found + ([str(s) for s in said] if isinstance(said, list) else [str(said)] if isinstance(said, str) else [])


# -- the page ----------------------------------------------------------------------------------------------------------


def _page(config: Row, summary: Row, rows: list[Row], rollouts: list[Row]) -> str:
    from plotly.offline import get_plotlyjs

    template = Path(__file__).with_name("report_page.html").read_text("utf-8")
    own = re.findall(r"<script>(.*?)</script>", template, re.S)[-1]
    drawn = get_plotlyjs()
    pieces = {
        "hashes": " ".join(f"'sha256-{_hash(script)}'" for script in (drawn, own)),
        "title": escape(f"{config.get('method', 'run')} on {config.get('task', 'unknown task')}"),
        "facts": _facts(config, summary),
        "warnings": "".join(f'<p class="warning"><b>⚠</b> {escape(w)}</p>' for w in summary["warnings"]),
        "headline": _headline(summary),
        "tiles": _tiles(summary),
        "formula": escape(str(config.get("formula") or "no formula recorded")),
        "config": escape(json.dumps(config, indent=2, ensure_ascii=False)),
        "data": _embed({"sections": curves.sections(rows), "samples": rollouts}),
        "plotly": drawn,
    }
    # One pass: nothing that is put in is looked through for further placeholders.
    return re.sub(r"\{\{(\w+)\}\}", lambda m: pieces[m[1]], template)


def _facts(config: Row, summary: Row) -> str:
    size = curves.plain(config.get("params"))
    named = [f"{name} {config[name]}" for name in ("model", "seed") if config.get(name) is not None]
    facts = [*named, f"{_short(size)} parameters" if size else ""]
    end = f" of {config['steps']}" if config.get("steps") else ""
    state = "finished" if summary["finished"] else f"step {summary['step']}{end}"
    done = "done" if summary["finished"] else "open"
    told = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    return f'<span class="state {done}">{escape(state)}</span>{told}'


def _headline(summary: Row) -> str:
    before, after, gain, name = summary["before"], summary["after"], summary["gain"], escape(summary["measure"])
    if before is None and after is None:
        return '<div class="gain"><b>—</b><span>nothing measured on held-out problems</span></div>'
    if before is None or after is None:
        known = before or after
        words = f'<div class="gain"><b>{_percent(known["value"])}</b><span>held-out {name}, measured once</span></div>'
        return words + _bars([("measured", known)])
    change = after["value"] - before["value"]
    kind = "up" if change > 0 else "down" if change < 0 else ""
    words = f"points of held-out {name}" + (f"<br>{_interval(gain)}" if gain else "")
    bars = _bars([("before", before), ("after", after)])
    return f'<div class="gain {kind}"><b>{_points(change)}</b><span>{words}</span></div>{bars}'


def _interval(gain: tuple[float, float, float]) -> str:
    return f"95% interval {_points(gain[1])} to {_points(gain[2])}"


def _bars(rows: list[tuple[str, Row]]) -> str:
    """Each measurement on a line from 0 to 100%, its interval as a band."""
    return f'<div class="bars">{"".join(_bar(name, measured) for name, measured in rows)}</div>'


def _bar(name: str, measured: Row) -> str:
    low, high = measured["ci95"] or (measured["value"],) * 2
    words = _percent(measured["value"])
    spread = f"{_percent(low)} – {_percent(high)}" if measured["ci95"] else "no interval"
    count = f", n = {measured['n']}" if measured["n"] else ""
    band = f'<i class="band" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></i>'
    dot = f'<i class="dot" style="left:{100 * measured["value"]:.2f}%"></i>'
    small = f"<small>{escape(spread + count)}</small>"
    told = f"<em>{name}</em><strong>{words}</strong>{small}"
    return f'<div class="bar {name}">{told}<div class="track">{band}{dot}</div></div>'


def _tiles(summary: Row) -> str:
    best, seconds, tokens = summary["best"], summary["seconds"], summary["tokens"]
    tiles = [
        ("best held-out", best and f"{_percent(best['value'])} at step {best['step']}"),
        ("last reward", summary["reward"] is not None and f"{summary['reward']:.3g}"),
        ("last length", summary["length"] is not None and f"{summary['length']:.0f} tokens"),
        ("tokens", tokens and _short(tokens)),
        ("training time", seconds and _duration(seconds)),
    ]
    return "".join(f"<div><dt>{name}</dt><dd>{escape(str(text))}</dd></div>" for name, text in tiles if text)


def _embed(data: Any) -> str:
    """JSON that stays inert inside a script element."""
    text = json.dumps(_clean(data), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _clean(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(k): _clean(v) for k, v in data.items()}
    if isinstance(data, list | tuple):
        return [_clean(v) for v in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def _short(number: float) -> str:
    size, unit = next(((s, u) for s, u in ((1e9, "B"), (1e6, "M"), (1e3, "k")) if abs(number) >= s), (1, ""))
    return f"{number / size:.3g}{unit}"


def _duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s" if minutes else f"{seconds:.3g} s"


def _config(run_dir: Path) -> Row:
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
