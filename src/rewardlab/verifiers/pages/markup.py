"""What is wrong with the HTML of a page, as a linter says it: rules that HTMLHint has by default, by Python's parser."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

ALONE = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"])
"""Tags without an end."""
DRAWN = frozenset(["svg", "math"])
"""Within these, a tag may end in itself."""


def faults(page: str, doctype: bool = False) -> list[str]:
    """What is wrong, in words: no tag at all; tags that are not closed, or never opened; an id, or an attribute of a tag, twice; an
    empty src; text in which < is not written as &lt;.  doctype: must come first, and a title must be there.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if not reader.tags:
        return ["has no tag"]
    found = reader.faults + [f"<{tag}> is not closed" for tag in reader.open]
    found += [f"the id {name!r} is there {n} times" for name, n in reader.ids.items() if n > 1]
    if doctype and not page.lstrip().lower().startswith("<!doctype html"):
        found.append("<!doctype html> does not come first")
    if doctype and not reader.titled:
        found.append("there is no <title>")
    return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.open: list[str] = []
        self.ids: Counter[str] = Counter()
        self.faults: list[str] = []
        self.titled, self.tags = False, 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)
        self.titled = self.titled or tag == "title"
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, attrs)
        if tag not in ALONE and not DRAWN & {*self.open, tag}:
            self.faults.append(f"<{tag}/> does not end in itself")

    def handle_endtag(self, tag: str) -> None:
        if tag in ALONE or tag not in self.open:
            self.faults.append(f"</{tag}> closes nothing")
            return
        while (last := self.open.pop()) != tag:
            self.faults.append(f"<{last}> is not closed")

    def handle_data(self, data: str) -> None:
        within = self.open[-1] if self.open else ""
        if within not in ("script", "style") and re.search(r"[<>]", data):
            self.faults.append(f"a < or > in the text {data.strip()[:30]!r} is not written as &lt; or &gt;")

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += 1
        names = Counter(name for name, _ in attrs)
        self.faults += [f"<{tag}> has {name} twice" for name, n in names.items() if n > 1]
        self.faults += [f"<{tag}> has a broken attribute {name!r}" for name in names if re.search(r"[<\"']", name)]
        values = dict(attrs)
        if values.get("id"):
            self.ids[str(values["id"])] += 1
        if "src" in values and not values["src"]:
            self.faults.append(f"<{tag}> has an empty src")
