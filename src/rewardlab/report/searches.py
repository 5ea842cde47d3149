"""Accuracy against tokens of several searches, as one HTML page without scripts that opens anywhere, offline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from rewardlab.report.html import percent, table

Row = Mapping[str, Any]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 420, 62, 190, 18, 46
COLOURS = 8
"""How many the style sheet has; further methods begin anew, dashed."""
STYLE = """
.chart { width: 100%; height: auto; }
.chart text { fill: var(--soft); font: 12px var(--sans); }
.chart .grid { stroke: var(--line); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 14px; padding: 16px 18px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 6px 12px; text-align: right; border-top: 1px solid var(--line); }
th:first-child { text-align: left; } main { padding-top: 30px; } dt { font-weight: 600; } dd { margin: 0 0 10px; font-weight: 400; }
"""


def page(document: Row) -> str:
    """The page of what `api.search` found: a chart, its numbers, and which method to use at which budget."""
    measured = [cell for cell in document["results"] if cell.get("accuracy")]
    title = escape(f"{', '.join(dict.fromkeys(cell['method'] for cell in document['results']))} on {document['task']}")
    said = [f"model {document['model']}", f"scorer {document['scorer']}", f"{document['n']:,} problems, the same for all"]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{title} · rewardlab</title>\n<style>\n{_style()}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
        f"<p>{escape(' · '.join(said))}</p>\n"
        f'<div class="card">{chart(measured)}</div>\n'
        "<p>Tokens: all that a problem cost, generated and read by all models, the scorer included. Bars are 95% intervals over "
        "problems; methods answer the same problems, so that they may differ surely though their bars overlap.</p>\n"
        f"{_plan(document.get('plan', ()))}"
        f'<h2>Numbers</h2>\n<div class="card">{_numbers(document["results"])}</div>\n</main>\n</body>\n</html>\n'
    )


def chart(cells: Sequence[Row]) -> str:
    """Accuracy against tokens per problem, on a logarithmic axis: a line for each method, through its budgets."""
    if not cells:
        return "<p>Nothing was measured.</p>"
    tokens = [cell["tokens"] for cell in cells]
    bounds = [cell["accuracy"]["ci95"] for cell in cells]
    frame = _Frame(min(tokens), max(tokens), min(low for low, _ in bounds), max(high for _, high in bounds))
    methods = list(dict.fromkeys(cell["method"] for cell in cells))
    lines = "".join(_line(i, name, [c for c in cells if c["method"] == name], frame) for i, name in enumerate(methods))
    return (
        f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="accuracy against tokens per problem">'
        f"{frame.drawn()}{lines}</svg>"
    )


class _Frame:
    """The axes: tokens from left to right by their logarithm, accuracy upwards."""

    def __init__(self, least: float, most: float, low: float, high: float):
        # a tenth more on both sides, so that no point lies on the frame, and one budget is in the middle
        self.x0, self.x1 = math.log(max(least, 1) / 1.1), math.log(max(most, 1) * 1.1)
        # whole tenths, within 0 and 1
        self.y0, self.y1 = max(0.0, math.floor(low * 10) / 10), min(1.0, math.ceil(high * 10) / 10)
        if self.y1 <= self.y0:
            self.y0, self.y1 = max(0.0, self.y0 - 0.1), min(1.0, self.y0 + 0.1)

    def x(self, tokens: float) -> float:
        return LEFT + (math.log(max(tokens, 1)) - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def y(self, accuracy: float) -> float:
        inside = min(self.y1, max(self.y0, accuracy))
        return HEIGHT - BOTTOM - (inside - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)

    def drawn(self) -> str:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        tenths = range(round(self.y0 * 10), round(self.y1 * 10) + 1)
        rows = "".join(
            f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{self.y(k / 10):.1f}" y2="{self.y(k / 10):.1f}"/>'
            f'<text x="{LEFT - 8}" y="{self.y(k / 10) + 4:.1f}" text-anchor="end">{10 * k}%</text>' for k in tenths
        )  # fmt: skip
        columns = "".join(
            f'<line class="grid" y1="{TOP}" y2="{bottom}" x1="{self.x(at):.1f}" x2="{self.x(at):.1f}"/>'
            f'<text x="{self.x(at):.1f}" y="{bottom + 18}" text-anchor="middle">{at:,}</text>' for at in self._ticks()
        )  # fmt: skip
        middle = (LEFT + right) / 2
        return f'{rows}{columns}<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">tokens per problem, all models</text>'

    def _ticks(self) -> list[int]:
        """Round numbers on the axis: 1, 2 and 5 times powers of ten, or all their multiples where few of these lie on it."""
        exponents = range(int(self.x1 / math.log(10)) + 1)
        known = [of * 10**k for k in exponents for of in range(1, 10)]
        inside = [at for at in known if self.x0 <= math.log(at) <= self.x1]
        return inside if len(inside) < 8 else [at for at in inside if str(at)[0] in "125"]


def _line(i: int, name: str, cells: Sequence[Row], frame: _Frame) -> str:
    colour, dash = f"var(--c{i % COLOURS})", ' stroke-dasharray="5 4"' if i >= COLOURS else ""
    ordered = sorted(cells, key=lambda cell: cell["tokens"])
    places = [(frame.x(c["tokens"]), frame.y(c["accuracy"]["value"])) for c in ordered]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    bars = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{frame.y(c["accuracy"]["ci95"][0]):.1f}" '
        f'y2="{frame.y(c["accuracy"]["ci95"][1]):.1f}" opacity="0.45"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"><title>{escape(_said(c))}</title></circle>'
        for c, (x, y) in zip(ordered, places, strict=True)
    )  # fmt: skip
    key = TOP + 14 + 20 * i
    legend = f'<line x1="{WIDTH - RIGHT + 16}" x2="{WIDTH - RIGHT + 38}" y1="{key - 4}" y2="{key - 4}"{dash}/>'
    label = f'<text x="{WIDTH - RIGHT + 46}" y="{key}">{escape(name)}</text>'
    return f'<g style="stroke:{colour};fill:none" stroke-width="2"><polyline points="{path}"{dash}/>{bars}{legend}</g>{label}'


def _said(cell: Row) -> str:
    return f"{cell['method']}: {percent(cell['accuracy']['value'])} for {cell['tokens']:,.0f} tokens"


def _plan(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    entries = "".join(f"<dt>{row['budget']:,} tokens</dt><dd>{escape(row['words'])}</dd>" for row in rows)
    return (
        f'<h2>Which to use</h2>\n<div class="card"><dl>{entries}</dl></div>\n<p>Differences are paired over problems. What cannot '
        "be told apart has p above 0.05, adjusted for the number of comparisons at a budget (Holm).</p>\n"
    )


def _numbers(cells: Sequence[Row]) -> str:
    columns = ["method", "budget", "setting", "right", "95% interval", "tokens", "of the policy", "of the scorer", "replies"]
    return table(columns, [_cells(cell) for cell in cells])


def _cells(cell: Row) -> list[str]:
    budget = "" if cell["budget"] is None else f"{cell['budget']:,}"
    if not cell.get("accuracy"):
        return [escape(cell["method"]), budget, escape(cell.get("why", "")), *[""] * 6]
    low, high = cell["accuracy"]["ci95"]
    spent = [f"{cell[name]:,.0f}" for name in ("tokens", "policy_tokens", "scorer_tokens")]
    right = [percent(cell["accuracy"]["value"]), f"{percent(low)} to {percent(high)}"]
    setting = escape(", ".join(f"{name}={value}" for name, value in cell["setting"].items()))
    return [escape(cell["method"]), budget, setting, *right, *spent, f"{cell['replies']:.1f}"]


def _style() -> str:
    """The colours and the type of the reports, and what is this page's own."""
    return Path(__file__).with_name("assets").joinpath("style.css").read_text("utf-8") + STYLE
