"""A forest plot as SVG: one line for each claim, its effect in margins with its interval, so that claims of any unit compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rewardlab.checks.verdict import AT_A_COST, HOLDS, NO_EFFECT, REVERSED, SMALLER
from rewardlab.comparisons.ranges import possible

WIDTH, ROW, LEFT, RIGHT, TOP = 760, 22, 190, 150, 34
LIMIT = 6.0
"""Margins at which an interval is cut; an arrow says that it goes on."""
GOOD, SMALL, COSTLY, NONE, BAD = "#1a7f37", "#6aa84f", "#b58900", "#57606a", "#cf222e"
COLOURS = {HOLDS: GOOD, SMALLER: SMALL, AT_A_COST: COSTLY, NO_EFFECT: NONE, REVERSED: BAD}
COLOURS |= {"better": GOOD, "equal": NONE, "worse": BAD}
OTHER = "#8c959f"


def forest(rows: Sequence[Mapping[str, Any]]) -> str:
    """The plot of claims in units of their margins: 0 is no effect, 1 the smallest effect that counts.

    rows: name, effect, low, high, margin (above 0) and verdict of each; measure, values: their range bounds the effect.
    """
    height = TOP + ROW * len(rows) + 14
    ticks = "".join(_tick(x, height) for x in range(-int(LIMIT), int(LIMIT) + 1, 2))
    drawn = "".join(_row(row, TOP + ROW * i + ROW / 2) for i, row in enumerate(rows))
    margin = f'<line x1="{_x(1):.1f}" x2="{_x(1):.1f}" y1="{TOP - 6}" y2="{height - 14}" stroke="#8c959f" stroke-dasharray="3 3"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="effects of claims in units of their margins">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{ticks}{margin}{drawn}</svg>\n'
    )


def _x(value: float) -> float:
    """The position of an effect, cut at LIMIT."""
    cut = max(-LIMIT, min(LIMIT, value))
    return LEFT + (cut + LIMIT) / (2 * LIMIT) * (WIDTH - LEFT - RIGHT)


def _tick(at: int, height: int) -> str:
    x, stroke = _x(at), "#24292f" if at == 0 else "#d0d7de"
    label = f"{at:+d}" if at else "0"
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{height - 14}" stroke="{stroke}"/>'
        f'<text x="{x:.1f}" y="{TOP - 12}" text-anchor="middle" fill="#57606a">{label}</text>'
    )


def _row(row: Mapping[str, Any], y: float) -> str:
    # the difference of two shares is from -1 to 1
    least, most = possible(row.get("measure", ""), row.get("values", ()))
    effect, low, high = (min(max(row[k], least - most), most - least) / row["margin"] for k in ("effect", "low", "high"))
    colour = COLOURS.get(row["verdict"], OTHER)
    arrows = [(low < -LIMIT, _x(-LIMIT), -5), (high > LIMIT, _x(LIMIT), 5)]
    heads = "".join(
        f'<path d="M{x:.1f} {y - 4:.1f} l{tip} 4 l{-tip} 4 z" fill="{colour}"/>' for cut, x, tip in arrows if cut
    )  # fmt: skip
    return (
        f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end" fill="#24292f">{escape(row["name"])}</text>'
        f'<line x1="{_x(low):.1f}" x2="{_x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="{colour}" stroke-width="2"/>{heads}'
        f'<circle cx="{_x(effect):.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'
        f'<text x="{WIDTH - RIGHT + 14}" y="{y + 4:.1f}" fill="{colour}">{escape(row["verdict"])}</text>'
    )
