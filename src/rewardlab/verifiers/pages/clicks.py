"""Whether the controls of a page respond: changes by real input that do not occur without it.

A page is shown anew for each control, so that time and chance are the same, clicked on or typed into, and compared with itself
left alone. What the browser does to a control under the mouse or with the focus is no response, nor is a text that stands where it
was typed, a dialog, an error, an empty page, or leaving for another one: pages are offline. Where a page that is left alone is not
the same each time, nothing that it does can be told to be a response.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .browser import HEIGHT, WIDTH, Browser
from .layout import Box, Layout, read

PATIENCE = 307
"""Virtual milliseconds that pass before a page is clicked on, and in which it may then respond. A prime: whether a timer that is
due at the very end still fires may differ from one time to the next."""
TYPED = "tea"


def responses(browser: Browser, page: str, layout: Layout, wanted: Sequence[str], most: int) -> list[tuple[str, bool]]:
    """(label, whether it responds) of up to `most` controls: those of `wanted` labels first, then in the page's order."""
    controls = [c for c in layout.controls() if 0 <= c.middle[0] < WIDTH and 0 <= c.middle[1] < HEIGHT]
    labels = {c.at: layout.label(c) for c in controls}
    first = sorted(controls, key=lambda c: (labels[c.at] not in wanted, c.at))[:most]
    if not first:
        return []
    alone = [_state(browser, page, None) for _ in range(2)]
    steady = alone[0] == alone[1]
    return [(labels[c.at], steady and _responds(browser, page, c, alone[0])) for c in first]


def _responds(browser: Browser, page: str, control: Box, alone: Mapping[str, Any]) -> bool:
    """Whether the page differs from itself left alone, and in the same way when it is used once more.

    A tick of a timer that a busy machine lets pass, or not, at the very end is no response: it is not repeated.
    """
    found: list[str] = []
    for _ in range(2):
        after = _state(browser, page, control)
        if browser.errors or browser.left or not after["texts"]:
            return False
        own = _within(after["parents"], control.at)
        found.append(_told(after, own, control))
        if found[-1] == _told(alone, own, control):
            return False
    return found[0] == found[1]


def _state(browser: Browser, page: str, control: Box | None) -> dict[str, Any]:
    """Of a page after it was shown and, if there is a control, used."""
    browser.show(page)
    browser.let_pass(PATIENCE)
    if control is not None and not browser.errors:
        browser.click(*control.middle)
        if control.is_typed_into:
            browser.write(TYPED)
    browser.let_pass(PATIENCE)
    snapshot = browser.layout()
    return _plain(snapshot) | {"texts": len(read(snapshot).texts())}


def _plain(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    """Nodes and what is laid out of each, by node; without what differs each time, such as ids of the browser's own."""
    strings, document = snapshot["strings"], snapshot["documents"][0]
    nodes = document["nodes"]
    named = [[strings[i] if i >= 0 else "" for i in nodes[key]] for key in ("nodeName", "nodeValue")]
    attributes = [[strings[i] for i in row] for row in nodes["attributes"]]
    filled = {
        str(at): [strings[value] if value >= 0 else "", key]
        for key in ("inputValue", "textValue")
        for at, value in zip(nodes.get(key, {}).get("index", ()), nodes.get(key, {}).get("value", ()), strict=True)
    }
    chosen = {key: nodes.get(key, {}).get("index", []) for key in ("inputChecked", "optionSelected")}
    laid: dict[str, list[Any]] = {}
    for at, styles, bounds, text in zip(*(document["layout"][k] for k in ("nodeIndex", "styles", "bounds", "text")), strict=True):
        laid.setdefault(str(at), []).append([[strings[i] for i in styles], bounds, strings[text] if text >= 0 else ""])
    return {
        "nodes": [list(row) for row in zip(*named, attributes, strict=True)], "filled": filled, "chosen": chosen, "laid": laid,
        "scrolled": [document.get("scrollOffsetX"), document.get("scrollOffsetY")], "parents": nodes["parentIndex"],
    }  # fmt: skip


def _within(parents: Sequence[int], top: int) -> set[int]:
    """A node and all below it; parents come before their children."""
    found = {top}
    for at in range(top + 1, len(parents)):
        if parents[at] in found:
            found.add(at)
    return found


def _told(state: Mapping[str, Any], own: set[int], control: Box) -> str:
    """A state to compare, without what the browser itself does to the control in use and all within it."""
    laid = {at: rows for at, rows in state["laid"].items() if int(at) not in own}
    filled = {at: text for at, text in state["filled"].items() if not (control.is_typed_into and int(at) in own)}
    nodes = state["nodes"]
    if control.is_typed_into:
        # what is typed stands in nodes of the browser's own, within the control
        nodes = [row for at, row in enumerate(nodes) if at not in own]
    return json.dumps([nodes, filled, state["chosen"], laid, state["scrolled"]], sort_keys=True)
