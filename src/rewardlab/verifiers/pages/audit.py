"""The whole check of a page: it runs, looks and responds as it should. In a worker process, with a browser of its own."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from . import markup
from .browser import LARGEST, Browser, Ended, Late, PageFault
from .clicks import responses
from .layout import read
from .looks import looks

SETTLING = 503
"""Virtual milliseconds after which a page is looked at; a prime, as `clicks.PATIENCE`."""
_browsers: list[Browser] = []


def audit(page: str, asked: Mapping[str, Any], most: int, doctype: bool, seconds: float, picture: bool) -> dict[str, Any]:
    """{"faults": [...]} of a page that does not run; else also "looks", "controls": [[label, responds], ...], "picture" as base64.

    A page by which a browser ends, or that is late, is shown again in another, and is at fault if that happens there too: a busy
    machine alone must not count against it. Raises RewardlabError where there is no browser.
    """
    found = markup.faults(page, doctype) if len(page) <= LARGEST else [f"is longer than {LARGEST} characters"]
    if found:
        return {"faults": found[:10]}
    for _ in range(2):
        try:
            browser = _browser(seconds)
            told = _audit(browser, page, asked, most, picture)
            browser.leave()
            return told
        except PageFault as fault:
            _end()
            found = [str(fault)]
            if not isinstance(fault, Late):
                break
        except Ended:
            _end()
            found = ["brings the browser down"]
    return {"faults": found}


def _audit(browser: Browser, page: str, asked: Mapping[str, Any], most: int, picture: bool) -> dict[str, Any]:
    browser.show(page)
    browser.let_pass(SETTLING)
    # asked before it is judged: the answer comes after all that the page did, which the end of its time does not
    snapshot = None if browser.errors or browser.left else browser.layout()
    if snapshot is None or browser.errors or browser.left:
        went = [f"goes away to {browser.left[:100]}"] if browser.left else []
        return {"faults": [*(f"its script fails: {error}" for error in browser.errors), *went]}
    layout = read(snapshot)
    found = {"faults": [], "looks": looks(layout, asked)}
    if picture:
        found["picture"] = base64.b64encode(browser.picture()).decode()
    return found | {"controls": responses(browser, page, layout, asked.get("controls", ()), most) if most else []}


def _browser(seconds: float) -> Browser:
    if not _browsers:
        _browsers.append(Browser(seconds))
    _browsers[0].seconds = seconds
    return _browsers[0]


def _end() -> None:
    while _browsers:
        _browsers.pop().end()
