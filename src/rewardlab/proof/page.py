"""A comparison as one HTML file that opens anywhere, offline."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import escape
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def page(record: Record) -> str:
    """The HTML of a comparison. Its content security policy allows its two scripts alone, by their hashes, and loads nothing."""
    # imported here, since plotly takes long to import and only this function needs it
    from plotly.offline import get_plotlyjs

    template = Path(__file__).with_name("compare_page.html").read_text("utf-8")
    # the template's last script draws the curves; the first is the placeholder of plotly's
    own_script = re.findall(r"<script>(.*?)</script>", template, re.S)[-1]
    plotly = get_plotlyjs()
    curves = [{"name": row["method"], **row["curve"]} for row in record["methods"]]
    pieces = {
        "hashes": " ".join(f"'sha256-{_hash(script)}'" for script in (plotly, own_script)),
        "title": escape(f"{', '.join(row['method'] for row in record['methods'])} on {record['task']}"),
        "facts": "".join(f"<span>{escape(fact)}</span>" for fact in _facts(record)),
        "first": escape(record["methods"][0]["method"]),
        "measure": escape(record["measure"]),
        "rows": "".join(_row(row) for row in record["methods"]),
        "formulas": "".join(_formula(row) for row in record["methods"]),
        "data": _embed({"measure": record["measure"], "curves": curves}),
        "plotly": plotly,
    }
    # one pass: text that is filled in may look like a placeholder, and must not be replaced itself
    return re.sub(r"\{\{(\w+)\}\}", lambda m: pieces[m[1]], template)


def _facts(record: Record) -> list[str]:
    budget = f"{record['budget']:,} tokens each" if record["budget"] else "each the tokens of the first method"
    seeds = f"seeds {', '.join(map(str, record['seeds']))}"
    return [f"model {record['model']}", seeds, budget, f"{record['problems']} held-out problems"]


def _row(row: Record) -> str:
    difference = row["difference"]
    cells = [
        escape(row["method"]),
        f"{row['mean']:.4g}",
        _interval(row["ci95"]),
        f"{difference['mean']:+.4g}" if difference else "",
        _interval(difference["ci95"], "+") if difference else "",
        f"{row['tokens']:,}",
        f"{sum(row['seconds']) / len(row['seconds']):.1f}",
    ]
    # coloured only where the whole interval lies on one side of 0
    significant = difference and difference["ci95"] and (difference["ci95"][0] > 0 or difference["ci95"][1] < 0)
    kind = ("up" if difference["mean"] > 0 else "down") if significant else ""
    return f'<tr class="{kind}">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _interval(bounds: list[float] | None, sign: str = "") -> str:
    return f"{bounds[0]:{sign}.4g} to {bounds[1]:{sign}.4g}" if bounds else "one seed"


def _formula(row: Record) -> str:
    return f"<details><summary>{escape(row['method'])}</summary><pre>{escape(row['formula'])}</pre></details>"


def _embed(data: Any) -> str:
    """JSON for a script element: escaped, so that `</script>` in a name cannot end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(script: str) -> str:
    """As a content security policy writes it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
