"""Comparison of two query results. Imports no rewardlab module except the engines.

NULL equals only NULL. Numbers are compared by value (1 = 1.0 = 1.00), exactly, except that floats may differ within the
tolerance. A text is never a number ('1' is not 1), true is not 1, bytes are not text, and texts must be identical.
Column names do not count.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from .engines import Result

ORDERS = 1000
"""Most column orders that are tried."""

NULL, TRUTH, NUMBER, NAN, TEXT, BYTES, LIST, MAP, OTHER = range(9)
Cell = tuple[Any, ...]
Rows = list[tuple[Cell, ...]]


def difference(said: Result, gold: Result, *, ordered: bool, column_order: bool, tolerance: float) -> str | None:
    """How a result differs from the gold one; None if they are equal.

    ordered: compare rows in order; otherwise as bags, so duplicates still count.  column_order: columns must be in the same order.
    """
    if said.width != gold.width:
        return f"returns {said.width} columns instead of {gold.width}"
    if len(said.rows) != len(gold.rows):
        return f"returns {len(said.rows)} rows instead of {len(gold.rows)}"
    mine, want = cells(said.rows), cells(gold.rows)
    if same(mine, want, ordered, tolerance):
        return None
    if not column_order and _in_some_order(mine, want, ordered, tolerance):
        return None
    if ordered and same(mine, want, False, tolerance):
        return "returns the rows in another order"
    return "returns other rows"


def cells(rows: Sequence[Sequence[Any]]) -> Rows:
    return [tuple(cell(value) for value in row) for row in rows]


def cell(value: Any) -> Cell:
    """A value as (kind, content), which can be hashed, and sorted with values of all kinds."""
    match value:
        case None:
            return (NULL, 0)
        case bool():
            return (TRUTH, value)
        case int() | float() | Decimal():
            return (NUMBER, value) if value == value else (NAN, 0)
        case str():
            return (TEXT, value)
        case bytes() | bytearray():
            return (BYTES, bytes(value))
        case list() | tuple():
            return (LIST, tuple(cell(x) for x in value))
        case dict():
            return (MAP, tuple(sorted((cell(k), cell(v)) for k, v in value.items())))
    return (OTHER, type(value).__name__, str(value))


def same(a: Rows, b: Rows, ordered: bool, tolerance: float) -> bool:
    """Whether two lists of rows are equal. As bags: equal rows cancel out, and what is left is sorted and compared in pairs."""
    if ordered:
        return all(_close(x, y, tolerance) for x, y in zip(a, b, strict=True))
    many_a, many_b = Counter(a), Counter(b)
    left = [sorted((many - other).elements(), key=_key) for many, other in ((many_a, many_b), (many_b, many_a))]
    return len(left[0]) == len(left[1]) and all(_close(x, y, tolerance) for x, y in zip(*left, strict=True))


def _key(row: tuple[Cell, ...]) -> tuple[Any, Any]:
    """Sort by the cells that must be equal first, so that rows which are equal within the tolerance get the same places."""
    return tuple(c if c[0] != NUMBER else (NUMBER,) for c in row), tuple(c[1] for c in row if c[0] == NUMBER)


def _close(a: tuple[Cell, ...], b: tuple[Cell, ...], tolerance: float) -> bool:
    return all(x == y or _close_cells(x, y, tolerance) for x, y in zip(a, b, strict=True))


def _close_cells(a: Cell, b: Cell, tolerance: float) -> bool:
    if a[0] != b[0] or a[0] not in (NUMBER, LIST):
        return False
    x, y = a[1], b[1]
    if a[0] == LIST:
        return len(x) == len(y) and _close(x, y, tolerance)
    if not isinstance(x, float) and not isinstance(y, float):
        return False
    try:
        return math.isclose(x, y, rel_tol=tolerance)
    except OverflowError:
        return False


def _in_some_order(said: Rows, gold: Rows, ordered: bool, tolerance: float) -> bool:
    """Whether some order of the columns of `said` makes the results equal."""
    mine, want = list(zip(*said, strict=True)), list(zip(*gold, strict=True))
    fits = [
        [i for i, column in enumerate(mine) if same([(c,) for c in column], [(c,) for c in wanted], ordered, tolerance)]
        for wanted in want
    ]
    # pigeonhole: three gold columns cannot share two candidates
    if any(fits.count(places) > len(places) for places in fits):
        return False
    orders = itertools.islice(_assignments(fits, mine, ()), ORDERS)
    return any(same([tuple(row[i] for i in order) for row in said], gold, ordered, tolerance) for order in orders)


def _assignments(fits: list[list[int]], columns: list[Any], taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every way to assign distinct columns to the places. Of identical columns only the first is tried."""
    if len(taken) == len(fits):
        yield taken
        return
    tried: list[Any] = []
    for i in fits[len(taken)]:
        if i not in taken and columns[i] not in tried:
            tried.append(columns[i])
            yield from _assignments(fits, columns, (*taken, i))
