"""Nulls that Arrow adds to the objects of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def unpadded(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of an Arrow table without the nulls within its objects.

    Arrow gives the objects of a column the same keys, so that a key which any row has is null in all others: there it is none.
    A null that someone meant cannot be told from it. Null columns, and nulls in lists, stay.
    """
    return {name: without_nulls(value) for name, value in row.items()}


def without_nulls(value: Any) -> Any:
    """A value without the keys of its objects, at any depth, that hold null."""
    if isinstance(value, Mapping):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list | tuple) else value
