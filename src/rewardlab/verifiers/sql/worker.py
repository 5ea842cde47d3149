"""A query held against the gold query on one or more databases: what processes of `kit/workers.py` do for the verifier `sql`."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Any

from . import engines
from .engines import QueryFailed, Result, Unusable
from .queries import PARTS, Query, Unreadable, likeness, read
from .results import difference

KEPT, KEPT_CELLS = 64, 20_000
"""Results that a process remembers, and their largest size."""

_results: OrderedDict[Any, Result] = OrderedDict()


class Suite:
    """Databases that a query runs on one after another. Raises Unusable where one cannot be opened."""

    def __init__(self, given: list[str], *, dialect: str, seconds: float, rows: int):
        self.seconds, self.rows = seconds, rows
        self.databases = [engines.database(one, dialect) for one in given]
        self.dialect, self.schema = self.databases[0].dialect, self.databases[0].schema
        if any(database.dialect != self.dialect for database in self.databases):
            raise Unusable("the databases are of different kinds")

    def run(self, query: Query) -> list[Result]:
        """Its results, all of them within one limit of time. Raises QueryFailed."""
        if query.chance:
            raise QueryFailed(f"is a matter of chance: {query.chance}")
        end = time.monotonic() + self.seconds
        return [self._one(database, query.text, end - time.monotonic()) for database in self.databases]

    def _one(self, database: engines.Database, text: str, left: float) -> Result:
        key = (database, text, self.rows)
        if (known := _results.get(key)) is not None:
            return known
        if left <= 0:
            raise QueryFailed(f"takes over {self.seconds:g} s")
        found = database.run(text, left, self.rows)
        if len(found.rows) * found.width <= KEPT_CELLS:
            _results[key] = found
        if len(_results) > KEPT:
            _results.popitem(last=False)
        return found


def judge(said: str | None, gold: str, given: list[str], limits: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    """{"correct", "why", "parts", "doubts"}; correct is None where gold query or databases cannot be used.

    said None: whether they can.  given: the databases.  limits: dialect, seconds, rows.  how: ordered (None: as the gold query
    is), column_order, tolerance.  doubts: what makes an agreement prove little.
    """
    try:
        suite = Suite(given, **limits)
        wanted = read(gold, suite.dialect)
        want = suite.run(wanted)
    except (QueryFailed, Unreadable) as problem:
        return {"correct": None, "why": f"the gold query {problem}"}
    except Unusable as problem:
        return {"correct": None, "why": str(problem)}
    if said is None:
        return {"correct": True, "why": "the gold query runs"}
    mine, have = None, None
    try:
        mine = read(said, suite.dialect)
        have = want if mine.text.strip() == wanted.text.strip() else _run(suite, mine)
        why = _difference(have, want, how | {"ordered": wanted.ordered if how["ordered"] is None else how["ordered"]})
    except (QueryFailed, Unreadable) as problem:
        why = str(problem)
    if why is None:
        return {"correct": True, "why": "right", "parts": dict.fromkeys(PARTS, 1.0), "doubts": _doubts(wanted, want)}
    parts = likeness(mine, wanted, suite.schema, have is not None) if mine else dict.fromkeys(PARTS, 0.0)
    return {"correct": False, "why": f"the query {why}", "parts": parts}


def _run(suite: Suite, query: Query) -> list[Result]:
    if not query.reads:
        raise QueryFailed("is not one that only reads")
    return suite.run(query)


def _difference(have: list[Result], want: list[Result], how: dict[str, Any]) -> str | None:
    """How the results differ on the first database on which they do; a query that does not look at the data is no answer."""
    for i, (h, w) in enumerate(zip(have, want, strict=True)):
        found = "reads no table" if w.read and not h.read else difference(h, w, **how)
        if found is not None:
            return found + (f" on database {i + 1}" if len(want) > 1 else "")
    return None


def _doubts(gold: Query, want: list[Result]) -> list[str]:
    doubts = []
    if not any(result.rows for result in want):
        doubts.append("both results are empty")
    if gold.cut:
        doubts.append("the gold query leaves it to chance which rows it takes")
    return doubts
