"""How a page looks, in numbers from 0 to 1: what was asked for, whether it can be read, whether anything is out of place.

    looks = (40 asked + 30 readable + 30 orderly) / 100                the weights by which AesCoder's judge of pictures scores
    readable = share of texts whose contrast is WCAG's: 4.5, or 3 for large ones
    orderly = mean of the shares of texts and controls that nothing overlaps, that lie within the page, and that are in line

In line is what has its left edge or its middle below or above that of another, within a pixel. Where nothing was asked for, looks
is the mean of the other two. A page without a text is worth nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .browser import WIDTH
from .layout import Box, Layout, luminance

NAMES = ("asked", "readable", "apart", "within", "aligned", "looks")
WEIGHTS = (0.4, 0.3, 0.3)
LARGE, LARGE_BOLD = 24.0, 18.66
"""Pixels from which a text is large."""
SEEN = 1.2
"""The contrast below which a text counts as not there."""
DARK = 0.18


def looks(layout: Layout, asked: Mapping[str, Any]) -> dict[str, float]:
    """asked: {"shows": [texts], "controls": [labels], "theme": "dark" or "light"}, each of which may be missing."""
    texts = layout.texts()
    if not texts:
        return dict.fromkeys(NAMES, 0.0)
    contrasts = [layout.contrast(t) for t in texts]
    readable = _share(c >= _enough(t) for t, c in zip(texts, contrasts, strict=True))
    items = _items(layout, texts)
    apart = _share(not any(_overlap(a, b) for b in items) for a in items)
    within = _share(a.left >= -1 and a.top >= -1 and a.right <= WIDTH + 1 and not _spills(a, layout) for a in items)
    aligned = _share(len(items) == 1 or any(_in_line(a, b) for b in items if b is not a) for a in items)
    orderly = (apart + within + aligned) / 3
    wanted = _wanted(layout, [t for t, c in zip(texts, contrasts, strict=True) if c >= SEEN], asked)
    parts = [(_share(wanted), WEIGHTS[0])] if wanted else []
    parts += [(readable, WEIGHTS[1]), (orderly, WEIGHTS[2])]
    value = sum(x * weight for x, weight in parts) / sum(weight for _, weight in parts)
    return dict(zip(NAMES, (parts[0][0] if wanted else 1.0, readable, apart, within, aligned, value), strict=True))


def _share(of: Any) -> float:
    known = list(of)
    return sum(map(bool, known)) / len(known) if known else 1.0


def _enough(text: Box) -> float:
    size = float(text.styles.get("font-size", "16px").removesuffix("px") or 16)
    bold = text.styles.get("font-weight", "400") in ("700", "800", "900", "bold")
    return 3.0 if size >= LARGE or (bold and size >= LARGE_BOLD) else 4.5


def _items(layout: Layout, texts: list[Box]) -> list[Box]:
    """Controls, and texts that stand in none."""
    controls = layout.controls()
    inside = {c.at for c in controls}
    return controls + [t for t in texts if not inside & set(t.above)]


def _overlap(a: Box, b: Box) -> bool:
    if a is b or a.at in b.above or b.at in a.above:
        return False
    return min(a.right, b.right) - max(a.left, b.left) > 1 and min(a.bottom, b.bottom) - max(a.top, b.top) > 1


def _spills(item: Box, layout: Layout) -> bool:
    """Whether a text is wider than the box that it stands in."""
    around = next((b for b in layout.boxes if item.above and b.at == item.above[0]), None)
    return item.tag == "#text" and around is not None and around.width > 0 and item.right > around.right + 1


def _in_line(a: Box, b: Box) -> bool:
    return abs(a.left - b.left) <= 1 or abs(a.middle[0] - b.middle[0]) <= 1 or abs(a.top - b.top) <= 1


def _wanted(layout: Layout, seen: list[Box], asked: Mapping[str, Any]) -> list[bool]:
    """What was asked for, one by one: whether it is there."""
    said = [" ".join(t.text.split()) for t in seen]
    found = [any(text in other for other in said) for text in asked.get("shows", ())]
    # a label counts only where it can be seen
    visible = {at for t in seen for at in t.above}
    labels = {layout.label(c) for c in layout.controls() if c.at in visible or c.tag in ("input", "textarea", "select")}
    found += [label in labels for label in asked.get("controls", ())]
    if theme := asked.get("theme"):
        # buttons have a colour of their own
        controls = {c.at for c in layout.controls()}
        body = [layout.behind(t) for t in seen if not controls & set(t.above)]
        is_dark = bool(body) and sum(luminance(c) < DARK for c in body) > len(body) / 2
        found.append(is_dark == (theme == "dark"))
    return found
