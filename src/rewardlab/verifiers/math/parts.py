"""Answers to the parts of a question: "(a) 12 (b) 30", "a) 12; b) 30", "(1) x = 2; (2) [1, 4)"."""

from __future__ import annotations

import re

from .text import LONGEST

_MARK = re.compile(r"(?:(?<=^)|(?<=[\s;,.$]))\(?([a-h]|[1-9])\)(?=[\s$\\:.]|\w)")
_ROWS = ("abcdefgh", "123456789")


def parts(text: str) -> list[str] | None:
    """The texts of two or more parts, whose marks begin with a or 1 and go on in order; None for any other text."""
    first = _MARK.search(text) if ")" in text and len(text) <= LONGEST else None
    row = next((row for row in _ROWS if first and row[0] == first[1]), "")
    if not first or text[: first.start()].strip(" $*\n") or not row:
        return None
    ends, starts = [], [first.end()]
    for mark in _MARK.finditer(text, first.end()):
        # the 3) of [1, 3) is no mark
        if len(starts) < len(row) and mark[1] == row[len(starts)] and _closed(text[starts[-1] : mark.start()]):
            ends.append(mark.start())
            starts.append(mark.end())
    found = [text[start:end].strip(" \t\r\n;,*:") for start, end in zip(starts, [*ends, len(text)], strict=True)]
    return found if len(found) > 1 and all(found) else None


def _closed(text: str) -> bool:
    return sum(map(text.count, "([{")) == sum(map(text.count, ")]}")) and text.count("$") % 2 == 0
