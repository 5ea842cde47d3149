"""JSON read strictly, and when two JSON values are equal. Imports no rewardlab module."""

from __future__ import annotations

import json
import math
from typing import Any

LONGEST = 1_000_000
"""Characters of the longest text that is read."""
DEEPEST = 100
"""Levels of nesting."""


def parse(text: str) -> Any:
    """The value of a JSON text. Raises ValueError, with the reason.

    Refused beside what is no JSON: a name that stands twice in an object, NaN and Infinity, numbers beyond a double's range or
    of thousands of digits, and what is absurdly long or deep.
    """
    if len(text) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError as problem:
        raise ValueError("nested too deeply") from problem
    if deeper(value, DEEPEST):
        raise ValueError(f"nested over {DEEPEST} levels deep")
    return value


def deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects stand in one another over so many levels deep."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [x for one in layer if isinstance(one, dict | list) for x in (one.values() if isinstance(one, dict) else one)]
        if not layer:
            return False
    return True


def equal(a: Any, b: Any) -> bool:
    """Equality of JSON values: numbers by value (1 = 1.0), true is no number, objects in any order, lists in theirs."""
    return canonical(a) == canonical(b)


def canonical(value: Any) -> Any:
    """A value that can be hashed, and equals another's where the JSON values are equal."""
    match value:
        case bool():
            return ("truth", value)
        case dict():
            return ("object", frozenset((name, canonical(x)) for name, x in value.items()))
        case list() | tuple():
            return ("list", *(canonical(x) for x in value))
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the name {name[:60]!r} stands twice in an object")
        found[name] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(written: str) -> float:
    value = float(written)
    if not math.isfinite(value):
        raise ValueError(f"the number {written[:60]} is out of range")
    return value
