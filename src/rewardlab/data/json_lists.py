"""The elements of a JSON list, each read as strictly as a line of JSON: what is wrong with one leaves the others readable."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from rewardlab.text import strict_json

# numbers stay texts, since one of thousands of digits cannot be converted: here it matters only where an element ends
_LAX = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
_SPACE = re.compile(r"[ \t\n\r]*")
_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def elements(text: str) -> Iterator[tuple[str, Any, str]]:
    """Each element of a list: its text, its value, and why it has none ("": it has one).

    Raises JSONDecodeError for a text that is no list, or in which the end of an element cannot be found.
    """
    at = _after(text, _skip(text, 0), "[")
    if text[at : at + 1] == "]":
        return _no_more(text, at + 1)
    while True:
        start, at = at, _end(text, at)
        yield text[start:at], *_value(text[start:at])
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            return _no_more(text, at + 1)
        at = _after(text, at, ",")


def members(text: str) -> Iterator[tuple[str, str]]:
    """Each name of an object, and the text of its value. Raises JSONDecodeError as `elements` does."""
    at = _after(text, _skip(text, 0), "{")
    if text[at : at + 1] == "}":
        return _no_more(text, at + 1)
    while True:
        if text[at : at + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        name, at = _LAX.raw_decode(text, at)
        start = _after(text, _skip(text, at), ":")
        at = _end(text, start)
        yield name, text[start:at]
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return _no_more(text, at + 1)
        at = _after(text, at, ",")


def _value(text: str) -> tuple[Any, str]:
    try:
        # a row may hold a long reply, so only memory limits its length
        return strict_json.parse(text, longest=sys.maxsize), ""
    except ValueError as e:
        return None, str(e)


def _end(text: str, start: int) -> int:
    """Where the element ends that begins here."""
    try:
        return _LAX.raw_decode(text, start)[1]
    except RecursionError:
        pass
    # too deep for the parser: only its brackets are counted
    depth = 0
    for found in _BRACKET.finditer(text, start):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if not depth:
            return found.end()
    raise json.JSONDecodeError("the brackets of this element are not closed", text, start)


def _after(text: str, at: int, sign: str) -> int:
    """Where the next thing stands after this sign. Raises JSONDecodeError where the sign is another."""
    if text[at : at + 1] != sign:
        raise json.JSONDecodeError(f"Expecting '{sign}' delimiter", text, at)
    return _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _no_more(text: str, at: int) -> None:
    """Raise JSONDecodeError for what follows the list."""
    if (rest := _skip(text, at)) < len(text):
        raise json.JSONDecodeError("Extra data", text, rest)
