"""Nulls that Arrow adds to the objects of a table, and the NaN that data frames write for a value that is missing."""

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


def gold_of(value: Any) -> Any:
    """A gold answer out of a table: None where there is none, which a column of numbers and of texts has as NaN."""
    return None if is_hole(value) else without_nulls(value)


def is_hole(value: Any) -> bool:
    """Whether this is how a table says that a value is missing: null, NaN, or the NA and NaT of pandas."""
    # an array has a truth for each of its entries
    if value is None or hasattr(value, "__len__"):
        return value is None
    # pandas' NA is neither equal to itself nor not
    return type(value).__name__ == "NAType" or bool(value != value)
