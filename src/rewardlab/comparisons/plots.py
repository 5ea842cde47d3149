"""Small pictures of a league as SVG, without scripts: learning curves, and the outcome against what is guarded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 330, 60, 190, 16, 46
COLOURS = (
    "#24292f", "#0969da", "#1a7f37", "#cf222e", "#8250df", "#bf8700", "#1b7c83", "#bc4c00", "#bf3989", "#57606a", "#0550ae",
    "#4d9221", "#c51b7d", "#7a5195", "#ef8a62", "#2f4b7c",
)  # fmt: skip
"""By the position of a member in its league, so that one has the same colour in all pictures."""


class Axis(NamedTuple):
    """From a number to a position."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers within it, some five of them: multiples of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        step = power * next(by for by in (1, 2, 5, 10) if by * power >= rough)
        return [step * i for i in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def axis(values: Sequence[float], start: float, end: float) -> Axis:
    """An axis that holds all values, with a little room; what is never negative begins at 0 at the lowest."""
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or abs(high) * 0.1 or 0.1
    return Axis(max(0.0, low - room) if low >= 0 else low - room, high + room, start, end)


def colour(position: int) -> str:
    return COLOURS[position % len(COLOURS)]


def curves(lines: Mapping[str, Sequence[float]], order: Sequence[str], across: str, upwards: str) -> str:
    """A line for each member over equal stretches of its run. Members with fewer than two points are left out."""
    known = {name: line for name, line in lines.items() if len(line) > 1}
    if not known:
        return ""
    x = Axis(0, 1, LEFT, WIDTH - RIGHT)
    y = axis([value for line in known.values() for value in line], HEIGHT - BOTTOM, TOP)
    ends = spread([y(line[-1]) for line in known.values()])
    drawn = []
    for (name, line), label in zip(known.items(), ends, strict=True):
        stroke = colour(order.index(name))
        points = " ".join(f"{x(i / (len(line) - 1)):.1f},{y(value):.1f}" for i, value in enumerate(line))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="1.6"/>')
        drawn.append(text(WIDTH - RIGHT + 8, label + 4, name, stroke))
    return picture("".join(drawn), x, y, across, upwards, ticks_across=False)


def paths(lines: Mapping[str, Sequence[Sequence[float]]], order: Sequence[str], across: str, upwards: str) -> str:
    """A line for each member through its (x, y), in their order, with a point at the last."""
    known = {name: line for name, line in lines.items() if len(line) > 1}
    if not known:
        return ""
    x = axis([at for line in known.values() for at, _ in line], LEFT, WIDTH - RIGHT)
    y = axis([value for line in known.values() for _, value in line], HEIGHT - BOTTOM, TOP)
    drawn = []
    for (name, line), label in zip(known.items(), spread([y(line[-1][1]) for line in known.values()]), strict=True):
        stroke, (last, end) = colour(order.index(name)), line[-1]
        points = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in line)
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="1.6"/>')
        drawn.append(f'<circle cx="{x(last):.1f}" cy="{y(end):.1f}" r="4" fill="{stroke}"/>')
        drawn.append(text(WIDTH - RIGHT + 8, label + 4, name, stroke))
    return picture("".join(drawn), x, y, across, upwards)


def scatter(
    points: Sequence[Mapping[str, Any]], order: Sequence[str], across: str, upwards: str
) -> str:  # fmt: skip
    """A point for each member, with its settings as smaller points joined to it.

    points: member, x, y, and at, the value of a setting or None for the member itself.
    """
    known = [point for point in points if point["x"] is not None and point["y"] is not None]
    if len(known) < 2:
        return ""
    x = axis([point["x"] for point in known], LEFT, WIDTH - RIGHT)
    y = axis([point["y"] for point in known], HEIGHT - BOTTOM, TOP)
    members = [name for name in order if any(point["member"] == name and point["at"] is None for point in known)]
    drawn = []
    for name in members:
        own = [point for point in known if point["member"] == name]
        centre, stroke = next(point for point in own if point["at"] is None), colour(order.index(name))
        for point in own:
            if point["at"] is not None:
                drawn.append(joined(x(centre["x"]), y(centre["y"]), x(point["x"]), y(point["y"]), stroke))
                drawn.append(text(x(point["x"]) + 6, y(point["y"]) - 5, f"{point['at']:g}", stroke, 10))
        drawn.append(f'<circle cx="{x(centre["x"]):.1f}" cy="{y(centre["y"]):.1f}" r="5" fill="{stroke}"/>')
    labels = spread([y(next(p["y"] for p in known if p["member"] == name and p["at"] is None)) for name in members])
    for name, height in zip(members, labels, strict=True):
        drawn.append(text(WIDTH - RIGHT + 8, height + 4, name, colour(order.index(name))))
    return picture("".join(drawn), x, y, across, upwards)


def joined(x1: float, y1: float, x2: float, y2: float, stroke: str) -> str:
    line = f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" stroke-width="1" opacity="0.6"/>'
    return f'{line}<circle cx="{x2:.1f}" cy="{y2:.1f}" r="3" fill="#ffffff" stroke="{stroke}"/>'


def spread(heights: Sequence[float], apart: float = 14) -> list[float]:
    """Heights of labels beside these, moved apart so that none covers another."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed, last = [0.0] * len(heights), TOP - apart
    for i in order:
        last = max(heights[i], last + apart)
        placed[i] = last
    over = max(0.0, last - (HEIGHT - BOTTOM + apart))
    return [height - over for height in placed]


def picture(inside: str, x: Axis, y: Axis, across: str, upwards: str, ticks_across: bool = True) -> str:
    grid = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(at):.1f}" y2="{y(at):.1f}" stroke="#eaeef2"/>'
        + text(LEFT - 8, y(at) + 4, f"{at:.3g}", "#57606a", 11, "end")
        for at in y.ticks()
    )
    if ticks_across:
        grid += "".join(text(x(at), HEIGHT - BOTTOM + 16, f"{at:.3g}", "#57606a", 11, "middle") for at in x.ticks())
    middle = (LEFT + WIDTH - RIGHT) / 2
    names = text(middle, HEIGHT - 8, across, "#24292f", 12, "middle")
    names += (
        f'<text x="14" y="{(TOP + HEIGHT - BOTTOM) / 2:.0f}" font-size="12" fill="#24292f" text-anchor="middle" '
        f'transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2:.0f})">{escape(upwards)}</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="sans-serif" font-size="12" role="img" aria-label="{escape(upwards)} against {escape(across)}">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{grid}{inside}{names}</svg>\n'
    )


def text(x: float, y: float, words: str, fill: str, size: int = 12, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}"'
    return f"<text {place}>{escape(words)}</text>"
