"""Read lists of items from text: JSON, bullets, numbered or plain lines, separated by semicolons or commas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from rewardlab.text.numbers import number
from rewardlab.text.replies import first_json

_BULLET = re.compile(r"\s{0,20}(?:[-*•+‣–]|\(?[0-9]{1,4}[.)])\s{1,20}")
_NUMBER = re.compile(r"[-+−]?[0-9]{1,60}(?:\.[0-9]{1,60})?(?:/[0-9]{1,60})?")
_MARKS = "\"'`*_,; "
_AND = re.compile(r"(?:and|&)\s", re.IGNORECASE)


def items(text: str) -> list[str]:
    """The keys of the items that a text lists, in order, with repetitions.

    A JSON list; else the lines with a bullet or number, if any; else all lines, if there are several; else the parts between
    semicolons; else the parts between commas.
    """
    json_value = first_json(text)
    # a second list after the first would make the answer ambiguous
    if json_value and isinstance(json_value[0], list) and "[" not in json_value[2]:
        return keys(json_value[0])
    lines = [line for line in text.strip().splitlines() if line.strip()]
    bullets = [line for line in lines if _BULLET.match(line)]
    if bullets:
        return keys(_BULLET.sub("", line, count=1) for line in bullets)
    if len(lines) > 1:
        return keys(line.rstrip(",;") for line in lines)
    parts = text.strip(" \t\r\n\\{}[]()").split(";" if ";" in text else ",")
    return keys([parts[0], *(_AND.sub("", part.strip(), count=1) for part in parts[1:])])


def keys(values: Iterable[Any]) -> list[str]:
    return [key for value in values if (key := item_key(value))]


def item_key(item: Any) -> str:
    """A normal form of an item: equal keys mean equal items.

    It is the value of a number, else the text in one case, without surrounding marks and repeated spaces.
    """
    if not isinstance(item, str):
        item = json.dumps(item, sort_keys=True, default=str)
    text = " ".join(item.casefold().split()).strip(_MARKS).rstrip(".").strip(_MARKS)
    value: Fraction | None = number(text) if _NUMBER.fullmatch(text) else None
    return text if value is None else str(value)
