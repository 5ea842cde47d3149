"""Values in the columns of a row: numbers and texts, however they are written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

MISSING = object()


def value_of(row: Mapping[str, Any], column: str) -> Any:
    """The value of a column, or of a.b within the column a; MISSING where there is none."""
    value: Any = row
    for part in [column] if column in row else column.split("."):
        value = value.get(part, MISSING) if isinstance(value, Mapping) else MISSING
    return value


def number_of(value: Any) -> float | None:
    """A value as a finite number; true is 1 and false 0, also as text, as tables write them. None where it is none."""
    if isinstance(value, str):
        value = {"true": 1.0, "false": 0.0}.get(value.strip().lower(), value)
    try:
        number = float(value) if isinstance(value, bool | int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def list_of(value: Any) -> list[Any] | None:
    """A value as a list; in a table it may be written as JSON. None where it is none."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, list) else None


def map_of(value: Any) -> dict[str, Any] | None:
    """A value as a dict; in a table it may be written as JSON. None where it is none."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return dict(value) if isinstance(value, Mapping) else None


def text_of(value: Any) -> str:
    """A value as one text: of a conversation its messages, of other data the JSON; empty where there is none."""
    if value is None or value is MISSING:
        return ""
    if isinstance(value, list) and all(isinstance(message, Mapping) for message in value):
        return "\n".join(str(message.get("content", message.get("value", ""))) for message in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def is_missing(value: Any) -> bool:
    """Whether a value says nothing: it is absent, null, NaN, or an empty text or list."""
    # value != value: NaN, which is how data frames write a missing value
    return (
        value is MISSING or value is None or value != value or value in ([], {}) or (isinstance(value, str) and not value.strip())
    )


def domain_of(row: Mapping[str, Any], column: str = "domain") -> str:
    """The domain that a row names; without one it is of the domain "other"."""
    value = value_of(row, column)
    return "other" if is_missing(value) else str(value)


def kind_in(row: Mapping[str, Any], column: str) -> str:
    """The value of a column as text, of a list its length: what rows of a kind have in common; "" without a column."""
    value = row.get(column) if column else ""
    return str(len(value) if isinstance(value, list | tuple) else value)
