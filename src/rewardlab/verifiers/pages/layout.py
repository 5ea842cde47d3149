"""What a browser laid out, as boxes with their texts and colours: read from its snapshot, not by a script within the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .browser import STYLES, PageFault

Colour = tuple[float, float, float, float]
"""Red, green and blue from 0 to 255, and how opaque it is, from 0 to 1."""
WHITE: Colour = (255.0, 255.0, 255.0, 1.0)
MOST_BOXES = 2000
CONTROLS = frozenset(["button", "input", "select", "textarea", "summary"])
TYPED = frozenset(("", "text", "search", "email", "tel", "url", "password", "number"))
"""Kinds of <input> that text is typed into."""


@dataclass(frozen=True)
class Box:
    """One element, or text, as it was laid out.

    at: its place in the snapshot's nodes.  order: in which it is painted.  above: the nodes that it lies in, the innermost first.
    listens: whether a script waits for clicks on it.  opacity: of it and all that it lies in.
    """

    at: int
    tag: str
    left: float
    top: float
    width: float
    height: float
    order: int
    text: str = ""
    styles: Mapping[str, str] = field(default_factory=dict)
    attributes: Mapping[str, str] = field(default_factory=dict)
    above: tuple[int, ...] = ()
    listens: bool = False
    opacity: float = 1.0

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.top + self.height / 2

    @property
    def shown(self) -> bool:
        return self.width > 0 and self.height > 0 and self.opacity > 0 and self.styles.get("visibility") == "visible"

    @property
    def covers(self) -> bool:
        """Whether what is behind it can hardly be seen."""
        return self.shown and colour_of(self.styles.get("background-color", ""))[3] * self.opacity > 0.5

    @property
    def kind(self) -> str:
        """Of an <input>."""
        return self.attributes.get("type", "").lower()

    @property
    def is_control(self) -> bool:
        """Whether a visitor takes it for something to click on, or to fill in."""
        if (self.tag == "input" and self.kind == "hidden") or "disabled" in self.attributes:
            return False
        links = self.tag == "a" and "href" in self.attributes
        return self.tag in CONTROLS or links or self.attributes.get("role") == "button" or (self.listens and self.tag != "body")

    @property
    def is_typed_into(self) -> bool:
        return self.tag == "textarea" or (self.tag == "input" and self.kind in TYPED)

    def holds(self, x: float, y: float) -> bool:
        return self.left <= x <= self.right and self.top <= y <= self.bottom


@dataclass(frozen=True)
class Layout:
    """boxes: in the order in which they are painted.  wide: how far the page reaches to the right."""

    boxes: list[Box]
    wide: float

    def texts(self) -> list[Box]:
        return [b for b in self.boxes if b.tag == "#text" and b.shown and b.text.strip()]

    def controls(self) -> list[Box]:
        """In the order of the page; not those within another."""
        found = {b.at: b for b in self.boxes if b.is_control and b.shown}
        return sorted((b for b in found.values() if not found.keys() & set(b.above)), key=lambda b: b.at)

    def label(self, box: Box) -> str:
        """What is written on it."""
        inside = " ".join(b.text.strip() for b in sorted(self.texts(), key=lambda b: b.at) if box.at in b.above)
        said = (box.attributes.get(name, "") for name in ("value", "placeholder", "aria-label"))
        return inside or next(filter(None, said), "")

    def behind(self, box: Box) -> Colour:
        """The colour that a text has behind it, of all that is painted before it where its middle is."""
        x, y = box.middle
        colour = WHITE
        for other in self.boxes:
            if other is box:
                break
            if other.holds(x, y) and other.shown:
                red, green, blue, opaque = colour_of(other.styles.get("background-color", ""))
                colour = over((red, green, blue, opaque * other.opacity), colour)
        return colour

    def contrast(self, text: Box) -> float:
        """WCAG 2.2's contrast of a text with what is behind it, 1 to 21; 1 where something is painted over it."""
        x, y = text.middle
        # painted later: in a later layer, or after it in the same one
        place = (text.order, text.at)
        if any((b.order, b.at) > place and b.holds(x, y) and b.covers for b in self.boxes):
            return 1.0
        behind = self.behind(text)
        red, green, blue, opaque = colour_of(text.styles.get("color", ""))
        a, b = luminance(over((red, green, blue, opaque * text.opacity), behind)), luminance(behind)
        return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def read(snapshot: Mapping[str, Any]) -> Layout:
    """The layout of a page, of its outermost document. Raises PageFault where there is more of it than can be looked at."""
    document, strings = snapshot["documents"][0], snapshot["strings"]
    if (number := len(document["layout"]["nodeIndex"])) > MOST_BOXES:
        raise PageFault(f"lays out {number} elements and texts: more than {MOST_BOXES} are not looked at")
    boxes = sorted(_boxes(document, strings), key=lambda b: (b.order, b.at))
    return Layout(boxes, float(document.get("contentWidth", 0)))


def _boxes(document: Mapping[str, Any], strings: list[str]) -> Iterator[Box]:
    nodes, layout = document["nodes"], document["layout"]
    parents, clickable = nodes["parentIndex"], set(nodes.get("isClickable", {}).get("index", ()))
    opacities: dict[int, float] = {-1: 1.0}
    for row, at in enumerate(layout["nodeIndex"]):
        above = tuple(_upwards(parents, at))
        values = [strings[i] if i >= 0 else "" for i in layout["styles"][row]]
        # a text has the styles of what it stands in, an opacity among them, which counts once
        text = layout["text"][row]
        is_text = nodes["nodeType"][at] == 3
        styles = dict(zip(STYLES, values, strict=False))
        around = next((opacities[i] for i in above if i in opacities), 1.0)
        own = 1.0 if is_text else float(styles.get("opacity") or 1)
        opacities.setdefault(at, around * own)
        names = [strings[i] for i in nodes["attributes"][at]]
        left, top, width, height = layout["bounds"][row]
        yield Box(
            at, "#text" if is_text else strings[nodes["nodeName"][at]].lower(), left, top, width, height,
            layout["paintOrders"][row], strings[text] if text >= 0 else "", styles,
            dict(zip(names[::2], names[1::2], strict=True)), above, at in clickable, around * own,
        )  # fmt: skip


def _upwards(parents: list[int], at: int) -> Iterator[int]:
    while (at := parents[at]) >= 0:
        yield at


def colour_of(text: str) -> Colour:
    """A colour as browsers compute it, `rgb(1, 2, 3)` or `rgba(1, 2, 3, 0.5)`; without any, one that cannot be seen."""
    numbers = [float(x) for x in re.findall(r"-?[\d.]+", text)] if text.startswith("rgb") else []
    if len(numbers) < 3:
        return (0.0, 0.0, 0.0, 0.0)
    return (numbers[0], numbers[1], numbers[2], numbers[3] if len(numbers) > 3 else 1.0)


def over(front: Colour, back: Colour) -> Colour:
    """A colour painted over an opaque one."""
    red, green, blue = (f * front[3] + b * (1 - front[3]) for f, b in zip(front[:3], back[:3], strict=True))
    return (red, green, blue, 1.0)


def luminance(colour: Colour) -> float:
    """Relative luminance, 0 to 1 (WCAG 2.2)."""
    parts = [x / 255 for x in colour[:3]]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
