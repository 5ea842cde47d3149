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


def difference(result: Result, gold: Result, *, ordered: bool, column_order: bool, tolerance: float) -> str | None:
    """How a result differs from the gold one; None if they are equal.

    ordered: compare rows in order; otherwise as bags, so duplicates still count.  column_order: columns must be in the same order.
    """
    if result.width != gold.width:
        return f"returns {result.width} columns instead of {gold.width}"
    if len(result.rows) != len(gold.rows):
        return f"returns {len(result.rows)} rows instead of {len(gold.rows)}"
    rows, gold_rows = cells(result.rows), cells(gold.rows)
    if same(rows, gold_rows, ordered, tolerance):
        return None
    if not column_order and _in_some_order(rows, gold_rows, ordered, tolerance):
        return None
    if ordered and same(rows, gold_rows, False, tolerance):
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
            # NaN equals NaN here, though not by ==
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
    # hashing pairs off the exactly equal rows, which leaves few to sort
    counts_a, counts_b = Counter(a), Counter(b)
    leftovers = [sorted((counts - other).elements(), key=_key) for counts, other in ((counts_a, counts_b), (counts_b, counts_a))]
    return len(leftovers[0]) == len(leftovers[1]) and all(_close(x, y, tolerance) for x, y in zip(*leftovers, strict=True))


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


def _in_some_order(rows: Rows, gold: Rows, ordered: bool, tolerance: float) -> bool:
    """Whether some order of the columns of `said` makes the results equal."""
    columns, gold_columns = list(zip(*rows, strict=True)), list(zip(*gold, strict=True))
    fitting = [
        [i for i, column in enumerate(columns) if same([(c,) for c in column], [(c,) for c in gold_column], ordered, tolerance)]
        for gold_column in gold_columns
    ]
    # pigeonhole: three gold columns cannot share two candidates
    if any(fitting.count(candidates) > len(candidates) for candidates in fitting):
        return False
    # the number of orders is factorial in the number of columns
    orders = itertools.islice(_assignments(fitting, columns, ()), ORDERS)
    return any(same([tuple(row[i] for i in order) for row in rows], gold, ordered, tolerance) for order in orders)


def _assignments(fitting: list[list[int]], columns: list[Any], taken: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every way to assign distinct columns to the places. Of identical columns only the first is tried."""
    if len(taken) == len(fitting):
        yield taken
        return
    tried: list[Any] = []
    for i in fitting[len(taken)]:
        if i not in taken and columns[i] not in tried:
            tried.append(columns[i])
            yield from _assignments(fitting, columns, (*taken, i))
