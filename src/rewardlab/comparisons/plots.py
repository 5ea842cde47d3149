"""Small pictures of a league as SVG, without scripts: learning curves, and the outcome against what is guarded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
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
        """Round numbers within it, three to eight of them: multiples of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / about
        power = 10.0 ** math.floor(math.log10(rough))
        # the nearest by ratio: the next above would leave two of them where `rough` is just above a round number
        step = power * min((1, 2, 5, 10), key=lambda by: abs(math.log(by * power / rough)))
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
    """A point for each member, on a line through its settings, which are smaller points.

    points: member, x, y, and at, the value of a setting or None for the member itself.
    """
    known = [point for point in points if point["x"] is not None and point["y"] is not None]
    if len(known) < 2:
        return ""
    x = axis([point["x"] for point in known], LEFT, WIDTH - RIGHT)
    y = axis([point["y"] for point in known], HEIGHT - BOTTOM, TOP)
    members = [name for name in order if any(point["member"] == name and point["at"] is None for point in known)]
    drawn, spots = [], []
    for name in members:
        own = [(x(point["x"]), y(point["y"]), point["at"]) for point in known if point["member"] == name]
        stroke, (cx, cy, _) = colour(order.index(name)), next(point for point in own if point[2] is None)
        line = " ".join(f"{at:.1f},{up:.1f}" for at, up in through(own))
        drawn.append(f'<polyline points="{line}" fill="none" stroke="{stroke}" stroke-width="1" opacity="0.6"/>')
        for at, up, setting in own:
            if setting is not None:
                drawn.append(f'<circle cx="{at:.1f}" cy="{up:.1f}" r="3" fill="#ffffff" stroke="{stroke}"/>')
            spots.append(Spot(at, up, name, stroke, 12) if setting is None else Spot(at, up, f"{setting:g}", stroke, 10))
        drawn.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="5" fill="{stroke}"/>')
    return picture("".join(drawn) + labelled(spots), x, y, across, upwards)


def through(points: Sequence[tuple[float, float, float | None]]) -> list[tuple[float, float]]:
    """The way through a member's settings in their order, and through the member itself, whose own setting is not told, where
    that lengthens it least."""
    settings = sorted((setting, (x, y)) for x, y, setting in points if setting is not None)
    path = [place for _, place in settings]
    (centre,) = [(x, y) for x, y, setting in points if setting is None]
    ways = [[*path[:i], centre, *path[i:]] for i in range(len(path) + 1)]
    return min(ways, key=lambda way: sum(math.dist(a, b) for a, b in pairwise(way)))


class Spot(NamedTuple):
    """A point, and what is to be read beside it."""

    x: float
    y: float
    words: str
    fill: str
    size: int


def labelled(spots: Sequence[Spot]) -> str:
    """The words of each beside its point, the large ones first, each where it covers least of what is there already; a thin line
    leads to those that found no place close by."""
    taken = [(spot.x - 5, spot.y - 5, spot.x + 5, spot.y + 5) for spot in spots]
    drawn = []
    for spot in sorted(spots, key=lambda spot: -spot.size):
        wide, high = 0.58 * spot.size * len(spot.words), spot.size
        # to the right, to the left, above, below; then the same farther away
        places = [
            (spot.x + dx * (7 + away) - (wide if dx < 0 else wide / 2 if dx == 0 else 0), spot.y + dy * (6 + away + high / 2))
            for away in (0, 10, 22, 36)
            for dx, dy in ((1, 0), (-1, 0), (0, -1), (0, 1), (1, -1), (1, 1), (-1, -1), (-1, 1))
        ]
        boxes = [(left, middle - high / 2, left + wide, middle + high / 2) for left, middle in places]
        covers = [_outside(box) + sum(_shared(box, other) for other in taken) for box in boxes]
        best = min(range(len(boxes)), key=covers.__getitem__)
        left, top, right, bottom = boxes[best]
        taken.append(boxes[best])
        if best >= 8:
            near = min(max(spot.x, left), right), min(max(spot.y, top), bottom)
            drawn.append(
                f'<line x1="{spot.x:.1f}" y1="{spot.y:.1f}" x2="{near[0]:.1f}" y2="{near[1]:.1f}" stroke="{spot.fill}" '
                'stroke-width="0.5"/>'
            )
        drawn.append(text(left, bottom - 0.2 * high, spot.words, spot.fill, spot.size))
    return "".join(drawn)


Area = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def _shared(one: Area, other: Area) -> float:
    """How much of one area another covers."""
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)


def _outside(box: Area) -> float:
    """How much of a label is beyond the plot, to whose right there is room."""
    whole = (box[2] - box[0]) * (box[3] - box[1])
    return whole - _shared(box, (LEFT, TOP - 12, WIDTH - 4, HEIGHT - BOTTOM))


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
        + text(LEFT - 8, y(at) + 4, f"{at:,.6g}", "#57606a", 11, "end")
        for at in y.ticks()
    )
    if ticks_across:
        grid += "".join(text(x(at), HEIGHT - BOTTOM + 16, f"{at:,.6g}", "#57606a", 11, "middle") for at in x.ticks())
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
