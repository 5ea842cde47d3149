"""The verifier of SQL queries: a query is right if it returns what the gold query returns, on sqlite and duckdb databases."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Failed, Workers, workers
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt
from rewardlab.text.answers import after_thinking, between_tags
from rewardlab.text.blocks import blocks, last_block
from rewardlab.text.replies import data
from rewardlab.util.extras import require
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

from .engines import is_script

LONGEST = 20_000
"""Longest query that is run, in characters."""
FENCES = ("sql", "sqlite", "sqlite3", "duckdb", "postgresql", "postgres", "mysql", "tsql", "query")
TILDES = re.compile(r"^([ \t]*)~~~+", re.MULTILINE)
BEGINS = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:select|with|values|from)\b", re.IGNORECASE | re.DOTALL)
"""How a query begins that reads."""
PARTS = ("runs", "syntax", "schema", "linking", "ngrams")
NOTHING = dict.fromkeys(PARTS, 0.0)
DOUBT = "right, but this is weak evidence: "
SPARE = 1.0
"""Extra seconds for a worker to open databases, beyond the limits of the two queries."""


class Gold(NamedTuple):
    query: str
    databases: list[str]
    dialect: str


@verifier(over="pairs", modules=("sqlglot", "duckdb"))
def sql(
    pairs: list[Pair], *, ordered: bool | None = None, column_order: bool = True,
    tolerance: NonNegativeFloat = 1e-9, strict: bool = False,
    partial: Mapping[str, float] | None = None, seconds: PositiveFloat = 5.0, rows: PositiveInt = 10_000, dialect: str = "sqlite",
) -> list[Verdict]:  # fmt: skip
    """Right if the query returns what the gold query returns: the last ```sql block, else a plain one, else the <answer>, else all.

    answer: {"query", "database"}, as a dict or its JSON text; or the query, with a data column `database`. A database is the path
    of a sqlite or duckdb file, or a script that creates one (in `dialect`, or the answer's own "dialect"). It may be a list;
    the results must then agree on every one, which a wrong query rarely achieves (test-suite accuracy; Zhong et al. 2020,
    arXiv:2010.02840).

    Rows are compared as bags, so duplicates count; or in order, if the gold query has an ORDER BY outside brackets (including rows
    that tie in it), or as `ordered` says. column_order=False: columns may be in any order. Column names never count. See
    `results.py` for the comparison of values; floats may differ by the relative `tolerance`.

    Wrong, with the reason: a query that fails, writes, is random, reads no table although the gold query reads one, takes over
    `seconds`, or returns over `rows` rows. A gold query that does so is our failure. Two empty results, or a gold query with LIMIT
    but no ORDER BY, are weak evidence: the reason says so, and with `strict` there is no verdict.

    parts: runs, syntax, schema, linking and ngrams (see `queries.likeness`); all are 1 for a right query.
    partial: the weight of each part in the value of a wrong query, e.g. {"runs": 0.1, "linking": 0.2}; at most 1 together.
    """
    shares = _shares(partial)
    limits, comparison = (
        {"seconds": seconds, "rows": rows},
        {"ordered": ordered, "column_order": column_order, "tolerance": tolerance},
    )
    try:
        require("verify", "sqlglot")
        # both queries may take their full time
        pool = workers("rewardlab.verifiers.sql.worker:judge", seconds=2 * seconds + SPARE)
        verdicts = _judge_all(pairs, pool, limits, comparison, dialect)
    except RewardlabError as problem:
        return [no_verdict(str(problem)) for _ in pairs]
    return [_with_partial(_strict(verdict) if strict else verdict, shares) for verdict in verdicts]


def stated_query(response: str) -> str:
    """The query of a reply after any thinking: its last ```sql block, else its last plain block that begins like a query, else the
    last plain one, else what stands in answer tags, else the whole text."""
    text = TILDES.sub(r"\1```", after_thinking(response))
    block = last_block(text, *FENCES)
    if block is None and (plain := blocks(text, "")):
        block = next((of for of in reversed(plain) if BEGINS.match(of)), plain[-1])
    return between_tags(text).strip() if block is None else block


def _shares(partial: Mapping[str, float] | None) -> dict[str, float]:
    shares = dict(partial or {})
    if any(name not in PARTS or not share >= 0 for name, share in shares.items()) or sum(shares.values()) > 1:
        raise RewardlabError(f"sql: partial takes weights for {', '.join(PARTS)} that sum to at most 1, not {shares}")
    return shares


def _judge_all(pairs: list[Pair], pool: Workers, limits: dict[str, Any], comparison: dict[str, Any], dialect: str) -> list[Verdict]:
    prepared = [_prepared(pair, dialect) for pair in pairs]
    to_run = {i: item for i, item in enumerate(prepared) if not isinstance(item, Verdict)}
    calls = [(query, gold.query, gold.databases, limits | {"dialect": gold.dialect}, comparison) for query, gold in to_run.values()]
    results = dict(zip(to_run, pool.map(calls), strict=True))
    # a worker that died or timed out: run the gold query without the reply to see which of the two is to blame
    failed = [i for i, result in results.items() if isinstance(result, Failed)]
    calls_by_index = dict(zip(to_run, calls, strict=True))
    gold_alone = dict(zip(failed, pool.map([(None, *calls_by_index[i][1:]) for i in failed]), strict=True))
    return [
        item if isinstance(item, Verdict) else _verdict(item[0], results[i], gold_alone.get(i)) for i, item in enumerate(prepared)
    ]


def _verdict(query: str, result: Done | Failed, gold_alone: Done | Failed | None) -> Verdict:
    """The worker's result as a verdict. alone: the result of the gold query by itself, if the first result is Failed."""
    if isinstance(gold_alone, Failed):
        return no_verdict(f"the gold query {gold_alone.why}")
    if isinstance(result, Failed):
        return wrong(f"the query {result.why}", query, parts=NOTHING)
    judged = result.value
    if judged["correct"] is None:
        return no_verdict(judged["why"])
    if not judged["correct"]:
        return wrong(judged["why"], query, parts=judged["parts"])
    return right(query, DOUBT + "; ".join(judged["doubts"]) if judged["doubts"] else "right", parts=judged["parts"])


def _strict(verdict: Verdict) -> Verdict:
    return no_verdict(verdict.why) if verdict.why.startswith(DOUBT) else verdict


def _with_partial(verdict: Verdict, shares: dict[str, float]) -> Verdict:
    if verdict.correct is not False or not shares:
        return verdict
    return replace(verdict, value=sum(share * verdict.parts[name] for name, share in shares.items()))


def _prepared(pair: Pair, dialect: str) -> Verdict | tuple[str, Gold]:
    gold = gold_of(pair, dialect)
    if gold is None:
        return no_verdict(_lacks(pair.answer))
    query = stated_query(pair.response)
    if not query or len(query) > LONGEST:
        why = f"the query is longer than {LONGEST} characters" if query else "no query found"
        return wrong(why, query[:LONGEST], parts=NOTHING)
    return query, gold


def gold_of(pair: Pair, dialect: str = "sqlite") -> Gold | None:
    """The gold query of a pair and its databases; None where the answer does not hold them."""
    answer = pair.answer
    if isinstance(answer, str):
        answer = _from_json(answer) or {"query": answer, "database": pair.meta.get("database")}
    if not isinstance(answer, Mapping):
        return None
    query, database = answer.get("query"), answer.get("database")
    databases = list(database) if isinstance(database, list | tuple) else [database]
    if not isinstance(query, str) or not query.strip() or not databases:
        return None
    if not all(isinstance(item, str | os.PathLike) for item in databases):
        return None
    # absolute, since a worker process may run in another folder
    sources = [str(item) if is_script(str(item)) else os.path.abspath(str(item)) for item in databases]
    return Gold(query, sources, str(answer.get("dialect", dialect)))


def _lacks(answer: Any) -> str:
    """What a gold answer lacks, in words."""
    read = (_from_json(answer) or {"query": answer} if answer.strip() else {}) if isinstance(answer, str) else answer
    if not isinstance(read, Mapping) or not isinstance(read.get("query"), str):
        has = f"; it has {', '.join(map(str, read))}" if isinstance(read, Mapping) and read else ""
        return f"the gold answer is not {{'query', 'database'}}, nor a query beside a column `database`{has}"
    return "the gold query names no database: the file of one, or a script that makes it, as `database` beside it or in a column"


def _from_json(text: str) -> Mapping[str, Any] | None:
    """The object that a text contains as JSON; None if the text is something else, such as a query."""
    try:
        value = data(text)
    except ValueError:
        return None
    return value if isinstance(value, Mapping) else None
