"""Compare a query with the gold query on one or more databases. Worker processes run this for the verifier `sql`."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from typing import Any

from . import engines
from .engines import QueryFailed, Result, Unusable
from .queries import PARTS, Query, Unreadable, likeness, read
from .results import cells, difference

KEPT, KEPT_CELLS = 64, 20_000
"""Most results that a process caches, and the most cells of one. A gold query is judged many times."""

_results: OrderedDict[Any, Result] = OrderedDict()


class Suite:
    """The databases that a query runs on, one after another. Raises Unusable if one cannot be opened."""

    def __init__(self, sources: list[str], *, dialect: str, seconds: float, rows: int):
        self.seconds, self.rows = seconds, rows
        self.databases = [engines.database(source, dialect) for source in sources]
        self.dialect, self.schema = self.databases[0].dialect, self.databases[0].schema
        if any(database.dialect != self.dialect for database in self.databases):
            raise Unusable("the databases are of different kinds")

    def run(self, query: Query) -> list[Result]:
        """Its result on each database, all within one time limit. Raises QueryFailed."""
        if query.chance:
            raise QueryFailed(f"is random: {query.chance}")
        end = time.monotonic() + self.seconds
        return [self._one(database, query.text, end - time.monotonic()) for database in self.databases]

    def _one(self, database: engines.Database, text: str, left: float) -> Result:
        key = (database, text, self.rows)
        # looked up before the time limit: a cached result takes no time
        if (known := _results.get(key)) is not None:
            return known
        if left <= 0:
            raise QueryFailed(f"takes over {self.seconds:g} s")
        result = database.run(text, left, self.rows)
        if len(result.rows) * result.width <= KEPT_CELLS:
            _results[key] = result
        # insertion order: the oldest result goes first
        if len(_results) > KEPT:
            _results.popitem(last=False)
        return result


def judge(text: str | None, gold: str, sources: list[str], limits: dict[str, Any], comparison: dict[str, Any]) -> dict[str, Any]:
    """{"correct", "why", "parts", "doubts"}; correct is None if the gold query or the databases cannot be used.

    text: the reply's query; None to test only whether the gold query and databases are usable.  sources: the databases.
    limits: dialect, seconds, rows.  comparison: ordered (None: if the gold query is), column_order, tolerance.
    doubts: why equal results are weak evidence.
    """
    try:
        suite = Suite(sources, **limits)
        gold_query = read(gold, suite.dialect)
        gold_results = suite.run(gold_query)
    except (QueryFailed, Unreadable) as problem:
        return {"correct": None, "why": f"the gold query {problem}"}
    except Unusable as problem:
        return {"correct": None, "why": str(problem)}
    if text is None:
        return {"correct": True, "why": "the gold query runs"}
    query, results = None, None
    try:
        query = read(text, suite.dialect)
        # the gold query itself is not run a second time
        results = gold_results if query.text.strip() == gold_query.text.strip() else _run(suite, query)
        why = _difference(
            results,
            gold_results,
            comparison | {"ordered": gold_query.ordered if comparison["ordered"] is None else comparison["ordered"]},
        )
    except (QueryFailed, Unreadable) as problem:
        why = str(problem)
    if why is None:
        return {"correct": True, "why": "right", "parts": dict.fromkeys(PARTS, 1.0), "doubts": _doubts(gold_query, gold_results)}
    parts = likeness(query, gold_query, suite.schema, results is not None) if query else dict.fromkeys(PARTS, 0.0)
    return {"correct": False, "why": f"the query {why}", "parts": parts}


def execute(text: str, sources: list[str], limits: dict[str, Any]) -> tuple[bool, str]:
    """Whether a query returns a row on some database, and a digest of what it returns, by which equal results are told: as bags,
    unless it has an ORDER BY. ("" where it fails.)

    Raises Unusable where a database cannot be opened.
    """
    suite = Suite(sources, **limits)
    try:
        query = read(text, suite.dialect)
        results = _run(suite, query)
    except (QueryFailed, Unreadable):
        return False, ""
    told = [cells(result.rows) if query.ordered else sorted(cells(result.rows), key=repr) for result in results]
    return any(result.rows for result in results), hashlib.sha256(repr(told).encode("utf-8", "surrogateescape")).hexdigest()


def _run(suite: Suite, query: Query) -> list[Result]:
    if not query.reads:
        raise QueryFailed("is not one that only reads")
    return suite.run(query)


def _difference(results: list[Result], gold_results: list[Result], comparison: dict[str, Any]) -> str | None:
    """How the results differ on the first database where they do. A query that reads no table has guessed: it differs."""
    for i, (result, gold) in enumerate(zip(results, gold_results, strict=True)):
        reason = "reads no table" if gold.read and not result.read else difference(result, gold, **comparison)
        if reason is not None:
            return reason + (f" on database {i + 1}" if len(gold_results) > 1 else "")
    return None


def _doubts(gold: Query, gold_results: list[Result]) -> list[str]:
    doubts = []
    if not any(result.rows for result in gold_results):
        doubts.append("both results are empty")
    if gold.cut:
        doubts.append("the gold query has LIMIT without ORDER BY, so its rows are arbitrary")
    return doubts
