"""What a file of rows holds at each of its places, whatever its form."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
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


def finite(value: Any) -> Any:
    """The value with null in place of the numbers that JSON does not know, NaN and infinity, wherever they stand in it: some tables
    write a missing number so."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(of) for name, of in value.items()}
    return [finite(of) for of in value] if isinstance(value, list | tuple) else value


def named_twice(names: Iterable[str]) -> str:
    """Which name several columns share, and what to do; "" where each has its own."""
    several = [name for name, count in Counter(names).items() if count > 1]
    if not several:
        return ""
    who = f"several columns are named {several[0]!r}" if several[0] else "several columns have no name"
    return f"{who}, and only one of them could be kept; give each its own name, or leave the others out"


def doubled(fields: Iterable[Any], within: str = "") -> str:
    """What `named_twice` says of the fields of a schema of Arrow, or of the first field that holds such fields."""
    fields = list(fields)
    if twice := named_twice(f"{within}{field.name}" if field.name else "" for field in fields):
        return twice
    return next((twice for field in fields if (twice := doubled(_fields(field.type), f"{within}{field.name}."))), "")


def _fields(kind: Any) -> list[Any]:
    """The fields that a type of Arrow holds; of a list, those of its elements."""
    held = [kind.field(i) for i in range(kind.num_fields)] if hasattr(kind, "field") else []
    value = getattr(kind, "value_type", None)
    return held or ([] if value is None else _fields(value))


def of_one_line(problem: ValueError) -> str:
    """What a JSON parser says of a text without its own number of a line, which is another one than that of the file."""
    if isinstance(problem, json.JSONDecodeError):
        return f"{problem.msg.removesuffix(' at')} at column {problem.colno}"
    return str(problem)
