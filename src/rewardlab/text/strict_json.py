"""Strict JSON parsing, and equality of JSON values. Imports no rewardlab module."""

from __future__ import annotations

import json
import math
from typing import Any

LONGEST = 1_000_000
"""Longest text that is read, in characters."""
DEEPEST = 100
"""Most levels of nesting."""


def parse(text: str, longest: int = LONGEST) -> Any:
    """The value of a JSON text. Raises ValueError with the reason.

    Besides invalid JSON it refuses repeated keys, NaN and Infinity, numbers beyond the range of a double or
    of thousands of digits, and values longer than `longest` characters or deeper than DEEPEST.
    """
    if len(text) > longest:
        raise ValueError(f"longer than {longest} characters")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError as problem:
        raise ValueError("nested too deeply") from problem
    if deeper(value, DEEPEST):
        raise ValueError(f"nested over {DEEPEST} levels deep")
    return value


def deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects are nested more than `levels` deep."""
    layer = [value]
    # level by level: recursion itself would fail on the nesting that is to be detected
    for _ in range(levels + 1):
        layer = [x for item in layer if isinstance(item, dict | list) for x in (item.values() if isinstance(item, dict) else item)]
        if not layer:
            return False
    return True


def equal(a: Any, b: Any) -> bool:
    """Equality of JSON values: numbers by value (1 = 1.0), true is not a number, keys in any order, lists in order."""
    return canonical(a) == canonical(b)


def canonical(value: Any) -> Any:
    """A hashable form of a JSON value; two forms are equal exactly if the JSON values are equal."""
    match value:
        case bool():
            return ("truth", value)
        case dict():
            return ("object", frozenset((name, canonical(x)) for name, x in value.items()))
        case list() | tuple():
            return ("list", *(canonical(x) for x in value))
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise ValueError(f"the key {key[:60]!r} occurs twice in an object")
        value[key] = item
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:60]} is out of range")
    return value
