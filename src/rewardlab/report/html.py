"""The static parts of a report: settings and results."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from rewardlab.runs.metrics import plain

Row = dict[str, Any]


def facts(config: Row, summary: Row) -> str:
    size = plain(config.get("params"))
    recorded = [f"{name} {config[name]}" for name in ("model", "seed") if config.get(name) is not None]
    texts = [*recorded, f"{short(size)} parameters" if size else ""]
    end = f" of {summary['steps']}" if summary["steps"] else ""
    state = "finished" if summary["finished"] else f"step {summary['step']}{end}"
    css_class = "done" if summary["finished"] else "open"
    spans = "".join(f"<span>{escape(fact)}</span>" for fact in texts if fact)
    return f'<span class="state {css_class}">{escape(state)}</span>{spans}'


def warnings(texts: list[str]) -> str:
    return "".join(f'<p class="warning"><b>⚠</b> {escape(text)}</p>' for text in texts)


def settings(config: Row, name: str = "") -> str:
    """The formula of a run, and its whole config.json."""
    formula = escape(str(config.get("formula") or "no formula recorded"))
    text = escape(json.dumps(config, indent=2, ensure_ascii=False))
    heading = f"<h2>{escape(name) or 'Formula'}</h2>"
    details = f'<details class="config"><summary>everything in config.json</summary><pre class="card">{text}</pre></details>'
    return f'{heading}<pre class="card">{formula}</pre>{details}'


def overview(summary: Row) -> str:
    return f'<section class="card headline">{headline(summary)}<dl class="tiles">{tiles(summary)}</dl></section>'


def table(columns: list[str], rows: list[list[str]], kind: str = "") -> str:
    """An HTML table; the first cell of each row is its header. Cells are inserted as they are: the caller must escape them."""
    header = "".join(f'<th scope="col">{column}</th>' for column in columns)
    body = "".join(f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in rows)
    return f'<div class="wide {kind}"><table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table></div>'


def headline(summary: Row) -> str:
    before, after, gain, name = summary["before"], summary["after"], summary["gain"], escape(summary["measure"])
    if before is None and after is None:
        return '<div class="gain"><b>—</b><span>nothing measured on held-out problems</span></div>'
    if before is None or after is None:
        measured = before or after
        caption = f'<div class="gain"><b>{percent(measured["value"])}</b><span>held-out {name}, measured once</span></div>'
        return caption + _bars([("measured", measured)])
    change = after["value"] - before["value"]
    kind = "up" if change > 0 else "down" if change < 0 else ""
    caption = f"points of held-out {name}" + (f"<br>{_interval(gain)}" if gain else "")
    bars = _bars([("before", before), ("after", after)])
    return f'<div class="gain {kind}"><b>{points(change)}</b><span>{caption}</span></div>{bars}'


def _interval(gain: tuple[float, float, float]) -> str:
    return f"95% interval {points(gain[1])} to {points(gain[2])}"


def _bars(rows: list[tuple[str, Row]]) -> str:
    """Each measurement as a dot on a line from 0 to 100%, with its interval as a band."""
    return f'<div class="bars">{"".join(_bar(name, measured) for name, measured in rows)}</div>'


def _bar(name: str, measured: Row) -> str:
    low, high = measured["ci95"] or (measured["value"],) * 2
    value_text = percent(measured["value"])
    spread = f"{percent(low)} – {percent(high)}" if measured["ci95"] else "no interval"
    count = f", n = {measured['n']}" if measured["n"] else ""
    if not 0 <= low <= high <= 1:
        return f'<div class="bar {name}"><em>{name}</em><strong>{value_text}</strong><small>{escape(spread + count)}</small></div>'
    band = f'<i class="band" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></i>'
    dot = f'<i class="dot" style="left:{100 * measured["value"]:.2f}%"></i>'
    details = f"<small>{escape(spread + count)}</small>"
    label = f"<em>{name}</em><strong>{value_text}</strong>{details}"
    return f'<div class="bar {name}">{label}<div class="track">{band}{dot}</div></div>'


def tiles(summary: Row) -> str:
    best, seconds, tokens = summary["best"], summary["seconds"], summary["tokens"]
    facts = [
        ("best held-out", best and f"{percent(best['value'])} at step {best['step']}"),
        ("last reward", summary["reward"] is not None and f"{summary['reward']:.3g}"),
        ("last length", summary["length"] is not None and f"{summary['length']:.0f} tokens"),
        ("tokens", tokens and short(tokens)),
        ("training time", seconds and duration(seconds)),
    ]
    return "".join(f"<div><dt>{name}</dt><dd>{escape(str(text))}</dd></div>" for name, text in facts if text)


def percent(share: float) -> str:
    return f"{100 * share:.1f}%" if 0 <= share <= 1 else f"{share:.4g}"


def points(share: float) -> str:
    return f"{100 * share:+.1f}".replace("-", "−")


def short(number: float) -> str:
    size, unit = next(((s, u) for s, u in ((1e9, "B"), (1e6, "M"), (1e3, "k")) if abs(number) >= s), (1, ""))
    return f"{number / size:.3g}{unit}"


def duration(seconds: float) -> str:
    rounded = round(seconds)
    hours, minutes = rounded // 3600, rounded % 3600 // 60
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rounded % 60} s" if minutes else f"{seconds:.3g} s"
