"""What a file of rows holds at each of its places, whatever its form."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
UTF16 = (b"\xff\xfe", b"\xfe\xff")
"""How a file of UTF-16 begins; no text in UTF-8 does."""


@dataclass(frozen=True)
class Entry:
    """What a file holds at one place ("line 7"): a row; or, where row is None, a text that is none, and why; or a blank line."""

    place: str
    row: Row | None
    raw: str = ""
    why: str = ""

    @property
    def blank(self) -> bool:
        return self.row is None and not self.why


def not_utf8(first: bytes) -> str:
    """What is wrong with a file that begins so, and the command that mends it."""
    return f"not UTF-8; convert it (iconv -f {'utf16' if first[:2] in UTF16 else 'latin1'} -t utf8)"


def halved(row: Row) -> str:
    """Which column of a row holds half of a surrogate pair, which no tokenizer reads, and how to mend it; "" if none does."""
    if (found := next((name for name, value in row.items() if _has_half(value)), None)) is None:
        return ""
    return (
        f"the column {found!r} holds half of a character (a surrogate, as where a text was cut within an emoji), which no "
        "tokenizer reads: take it out, or write the text as text.encode('utf-8', 'replace').decode()"
    )


def _has_half(value: Any) -> bool:
    if isinstance(value, str):
        return not value.isascii() and re.search("[\ud800-\udfff]", value) is not None
    inner = [*value, *value.values()] if isinstance(value, dict) else value
    return isinstance(inner, list | tuple) and any(map(_has_half, inner))


def of_one_line(problem: ValueError) -> str:
    """What a JSON parser says of a text without its own number of a line, which is another one than that of the file."""
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg.removesuffix(' at')} at column {problem.colno}"
    return str(problem)
