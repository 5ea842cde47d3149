"""A comparison as one HTML file that opens anywhere, offline."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from rewardlab.checks.verdict import PAIRS
from rewardlab.comparisons.comparison import HIGHER, LOWER
from rewardlab.comparisons.plan import UPDATES
from rewardlab.report.curves import around
from rewardlab.report.library import hashed, library

Record = dict[str, Any]


def page(record: Record, out: Path | None = None, library_file: Path | None = None) -> str:
    """The HTML of a comparison, as it is written to `out`. Its content security policy allows its two scripts alone.

    library_file: where Plotly's library lies, which the page then loads; None: the page holds it.
    """
    rows = record["methods"]
    template = Path(__file__).with_name("compare_page.html").read_text("utf-8")
    # the template's only script draws the curves; the library goes before it
    (own_script,) = re.findall(r"<script>(.*?)</script>", template, re.S)
    pieces = {
        "notes": "".join(f'<p class="caution">{escape(note)}</p>' for note in record.get("notes", ())),
        "costs": "".join(map(_cost, rows)),
        "title": escape(f"{', '.join(row['method'] for row in rows)} on {record['task']}"),
        "facts": "".join(f"<span>{escape(fact)}</span>" for fact in _facts(record)),
        "measure": escape(record["measure"]),
        "how": FEW_SEEDS if _few(record) else SEVERAL_SEEDS,
        "band": "from the lowest to the highest seed" if _few(record) else "with its 95% interval",
        "heads": "".join(f"<th>{head}</th>" for head in _heads(rows[0]["method"], _few(record))),
        "rows": "".join(_row(row, _few(record)) for row in rows),
        "formulas": "".join(_formula(row) for row in rows),
        # a comparison of an older version has no frontier
        "frontier": _frontier(record.get("frontier")),
        "pass_at": _pass_at(rows),
        "watched": _watched(panels := _panels(rows), _few(record)),
        "data": _embed(_data(record, panels)),
    }
    plotly = library(out, library_file, *pieces.values())
    pieces |= {"plotly": plotly.element, "allowed": f"{plotly.source} 'sha256-{hashed(own_script)}'"}
    # one pass: text that is filled in may look like a placeholder, and must not be replaced itself
    return re.sub(r"\{\{(\w+)\}\}", lambda m: pieces[m[1]], template)


SEVERAL_SEEDS = "Means over seeds, each a point, with Student t intervals over them."
FEW_SEEDS = (
    f"Fewer than {PAIRS} seeds: each is a point, and the interval is over the held-out problems, where a run has one; it says "
    "nothing of how much seeds differ."
)


def _few(record: Record) -> bool:
    return len(record["seeds"]) < PAIRS


def _data(record: Record, panels: list[Record]) -> Record:
    """What the page's script draws."""
    rows = record["methods"]
    # a method that trains nothing has no curve: its mean is drawn as a line across
    curves = [
        {
            "name": row["method"],
            **row["curve"],
            "points": row.get("points", []),
            "level": None if row.get("trains", True) else row["mean"],
        }
        for row in rows
    ]
    seen = [y for curve in curves for run in curve["points"] for _, y in run]
    levels = [y for curve in curves for y in (*curve["low"], *curve["high"], curve["level"], *seen) if y is not None]
    return {
        "measure": record["measure"], "curves": curves, "range": around(levels), "frontier": record.get("frontier"),
        "seeds": [{"name": row["method"], "values": row.get("values", [])} | {k: row[k] for k in ("mean", "ci95")} for row in rows],
        "passAt": [_over_k(row) for row in rows if row.get("pass_at")], "watched": panels,
    }  # fmt: skip


def _frontier(found: Record | None) -> str:
    """The section of the frontier, which a script draws; nothing for a comparison without one."""
    if not found:
        return ""
    x, y = found["x"], found["y"]
    return (
        f'<h2>{escape(y["name"])} against {escape(x["name"])}</h2><div class="card"><div id="frontier"></div></div>'
        '<p class="note">Means over seeds, each of which is a small point, with 95% intervals where there are any. '
        f"{y['better'].capitalize()} {escape(y['name'])} and {x['better']} {escape(x['name'])} are better. Each method is a line "
        "through its settings, in their order. Grey: another point is at least as good on both axes, by these means; the dotted "
        "line joins all others.</p>"
    )


TITLES = {
    "truth": "Right replies in training", "reward": "Reward in training", "entropy": "Entropy, nats per token",
    "kl": "KL to the reference, nats per token", "length": "Length, tokens per reply", "signal": "Groups with a signal",
}  # fmt: skip


def _panels(rows: list[Record]) -> list[Record]:
    """What training logged, a panel for each number, with a line for each method that logged it."""
    found = []
    for name, title in TITLES.items():
        # a comparison of an older version has none
        lines = [{"name": row["method"], "x": c["steps"], **c} for row in rows if (c := row.get("watched", {}).get(name))]
        if lines:
            found.append({"title": title, "lines": lines})
    return found


def _watched(panels: list[Record], few: bool) -> str:
    if not panels:
        return ""
    cards = "".join(f'<div class="card"><div id="watched-{i}" class="watched"></div></div>' for i in range(len(panels)))
    band = "from the lowest to the highest seed" if few else "with their 95% intervals"
    return f'<h2>In training</h2>{cards}<p class="note">Means over seeds at every step, {band}.</p>'


def _over_k(row: Record) -> Record:
    """pass@k against k, as a line with its band."""
    points = {int(k): at for k, at in row["pass_at"].items() if at["mean"] is not None}
    bounds = [at["ci95"] or [at["mean"]] * 2 for at in points.values()]
    mean = [at["mean"] for at in points.values()]
    return {"name": row["method"], "x": list(points), "mean": mean, "low": [b[0] for b in bounds], "high": [b[1] for b in bounds]}


def _pass_at(rows: list[Record]) -> str:
    """The section of pass@k at the end: a chart, and its numbers."""
    known = [row for row in rows if row.get("pass_at")]
    if not known:
        return ""
    ks = list(known[0]["pass_at"])
    header = "".join(f"<th>pass@{k}</th>" for k in ks)
    body = "".join(
        f"<tr>{_cells([escape(row['method']), *(_number(row['pass_at'].get(k, {}).get('mean')) for k in ks)])}</tr>"
        for row in known
    )
    return (
        '<h2>pass@k at the end</h2><div class="card"><div id="pass-at"></div></div>'
        f'<div class="card"><table><thead><tr><th>method</th>{header}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _facts(record: Record) -> list[str]:
    # a comparison of an older version says neither the steps nor what all runs got alike, which was tokens
    steps = f" uses in {record['steps']} steps" if record.get("steps") else ""
    first = f"each the tokens that the first method{steps or ' uses'} (equal tokens)"
    alike = f"{record['budget']:,} tokens each (equal tokens)" if record["budget"] else first
    if record.get("equal") == UPDATES:
        alike = f"{record['steps']} steps each (equal updates)"
    seeds = f"seeds {', '.join(map(str, record['seeds']))}"
    # nor the runs at each rate
    runs = f" (runs at each: {record['rate_seeds']})" if "rate_seeds" in record else ""
    by = f", by {' and '.join(record['rates_by'])}" if record.get("rates_by") else ""
    rates = [f"rates chosen from {', '.join(f'{rate:g}' for rate in record['rates'])}{runs}{by}"] if record.get("rates") else []
    return [f"model {record['model']}", seeds, alike, *rates, f"{record['problems']} held-out problems"]


def _heads(first: str, few: bool) -> list[str]:
    against = f"against {escape(first)}"
    if few:
        return ["method", "mean", "each seed", "95% interval, problems", against, "each seed", "decided"]
    return ["method", "mean", "95% interval, seeds", against, "95% interval", "p, adjusted", "decided"]


def _row(row: Record, few: bool) -> str:
    """A method's numbers, with those of each seed where they are few; its difference is coloured only where it is decided."""
    change = row["difference"] or {}
    # a comparison of an older version decided nothing
    decision = change.get("decision", "")
    cells = [escape(row["method"]), _number(row["mean"]), *([_seeds(row)] if few else []), _interval(row["ci95"])]
    if change:
        beside = [_seeds(change, "+")] if few else [_interval(change["ci95"], "+"), _number(change.get("p_adjusted"))]
        cells += [_number(change["mean"], "+"), *beside, decision]
    kind = {HIGHER: "up", LOWER: "down"}.get(decision, "")
    return f'<tr class="{kind}">{_cells(cells + [""] * (7 - len(cells)))}</tr>'


def _cost(row: Record) -> str:
    counts = [row["tokens"], row.get("updates"), row.get("tokens_per_answer")]
    rate = row.get("rate")
    shown = ["–" if count is None else f"{count:,.0f}" for count in counts] + [f"{rate:g}" if rate else "its own"]
    seconds = sum(row["seconds"]) / len(row["seconds"])
    return f"<tr>{_cells([escape(row['method']), *shown, f'{seconds:.1f}'])}</tr>"


def _cells(cells: list[str]) -> str:
    return "".join(f"<td>{cell}</td>" for cell in cells)


def _number(value: float | None, sign: str = "") -> str:
    return "undefined" if value is None else f"{value:{sign}.4g}"


def _interval(bounds: list[float] | None, sign: str = "") -> str:
    return f"{bounds[0]:{sign}.4g} to {bounds[1]:{sign}.4g}" if bounds else "–"


def _seeds(found: Record, sign: str = "") -> str:
    return ", ".join(_number(value, sign) for value in found.get("values", []))


def _formula(row: Record) -> str:
    return f"<details><summary>{escape(row['method'])}</summary><pre>{escape(row['formula'])}</pre></details>"


def _embed(data: Any) -> str:
    """JSON for a script element: escaped, so that `</script>` in a name cannot end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
