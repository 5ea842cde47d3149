"""What queries return, without a gold query: whether they run, and which return the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Failed, workers
from rewardlab.util.extras import require
from rewardlab.verifiers.contract import Pair

from .verifier import LONGEST, SPARE, gold_of, stated_query


class Executed(NamedTuple):
    """runs: without an error.  rows: it returns at least one.  result: equal texts for equal results; "" where it fails."""

    runs: bool
    rows: bool
    result: str


FAILED = Executed(False, False, "")


def executed(pairs: Sequence[Pair], *, seconds: float = 5.0, rows: int = 10_000, dialect: str = "sqlite") -> list[Executed]:
    """The query that each response states, run on the databases of its answer (see `verifier.sql`); the gold query is not read.

    Raises RewardlabError where an answer names no database, the database cannot be opened, or sqlglot is missing.
    """
    require("verify", "sqlglot")
    calls = []
    for pair in pairs:
        if (gold := gold_of(pair, dialect)) is None:
            raise RewardlabError(f"the answer of {pair.prompt[:60]!r} is not {{'query', 'database'}}: its queries cannot be run")
        limits = {"seconds": seconds, "rows": rows, "dialect": gold.dialect}
        calls.append((stated_query(pair.response)[:LONGEST], gold.databases, limits))
    done = workers("rewardlab.verifiers.sql.worker:execute", seconds=seconds + SPARE).map(calls)
    # a query can hang or kill its worker; an error is the database's
    if broken := next((x.why for x in done if isinstance(x, Failed) and x.kind == "error"), None):
        raise RewardlabError(f"queries cannot be run: {broken}")
    return [FAILED if isinstance(x, Failed) or not x.value[1] else Executed(True, *x.value) for x in done]
