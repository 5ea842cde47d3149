"""Static analysis of queries with sqlglot, without a database: randomness, order, and the similarity of two queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.tokens import TokenType

Schema = Mapping[str, Sequence[str]]

CHANCE = frozenset({
    "random", "randomblob", "rand", "uuid", "uuidv4", "uuidv7", "gen_random_uuid", "setseed", "nextval", "currval", "sleep_ms",
})  # fmt: skip
"""Functions of sqlite and duckdb that are random, have side effects, or only take time."""
OPENING = {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.FROM, TokenType.L_PAREN}


PARTS = ("runs", "syntax", "schema", "linking", "ngrams")


class Unreadable(Exception):
    """The text cannot be split into tokens."""


class Query:
    """The tokens of a query in a dialect. Raises Unreadable."""

    def __init__(self, text: str, dialect: str):
        self.text, self.dialect = text, dialect
        try:
            words = sqlglot.tokenize(text, read=dialect)
        except (SqlglotError, ValueError, RecursionError) as problem:
            raise Unreadable(f"cannot be read: {str(problem).partition(chr(10))[0]}") from problem
        while words and words[-1].token_type == TokenType.SEMICOLON:
            words.pop()
        self.words = words

    @property
    def reads(self) -> bool:
        """Whether it begins like a query, rather than a statement that writes."""
        return bool(self.words) and self.words[0].token_type in OPENING

    @property
    def chance(self) -> str | None:
        """The function, or the kind of table sample, that makes its result random; None if it is deterministic."""
        for word, after in pairwise(self.words):
            name = word.text.lower()
            if (after.token_type == TokenType.L_PAREN and name in CHANCE) or (name == "using" and after.text.lower() == "sample"):
                return name
        return next((w.text.lower() for w in self.words if w.token_type == TokenType.TABLE_SAMPLE), None)

    @property
    def ordered(self) -> bool:
        return TokenType.ORDER_BY in self._outermost()

    @property
    def cut(self) -> bool:
        """Whether it returns only some of its rows without fixing which: LIMIT without ORDER BY."""
        outermost = self._outermost()
        return bool(outermost & {TokenType.LIMIT, TokenType.FETCH}) and TokenType.ORDER_BY not in outermost

    def _outermost(self) -> set[TokenType]:
        """Types of the tokens outside all brackets, ignoring brackets around the whole query."""
        depth, by_depth = 0, [set[TokenType]()]
        for word in self.words:
            depth += (word.token_type == TokenType.L_PAREN) - (word.token_type == TokenType.R_PAREN)
            by_depth += [set[TokenType]() for _ in range(depth + 1 - len(by_depth))]
            by_depth[max(depth, 0)].add(word.token_type)
        return next((types for types in by_depth if types - {TokenType.L_PAREN, TokenType.R_PAREN}), set())

    @cached_property
    def tree(self) -> exp.Query | None:
        """The syntax tree; None if the text is not exactly one query that sqlglot can parse."""
        try:
            trees = sqlglot.parse(self.text, dialect=self.dialect)
        except (SqlglotError, ValueError, RecursionError):
            return None
        queries = [tree for tree in trees if tree is not None]
        return queries[0] if len(queries) == 1 and isinstance(queries[0], exp.Query) else None


@lru_cache(maxsize=1024)
def read(text: str, dialect: str) -> Query:
    """The query of a text, cached. Raises Unreadable."""
    return Query(text, dialect)


def likeness(query: Query, gold: Query, schema: Schema, runs: bool) -> dict[str, float]:
    """Partial scores of a wrong query, each from 0 to 1 (after Pourreza et al. 2025, arXiv:2503.23157).

    runs: it runs without an error.  syntax: it can be parsed.  schema: every table and column that it names exists.  A query that
    runs has both, even if sqlglot disagrees.  linking: Jaccard similarity of the tables and columns that it and the gold
    query name.  ngrams: Jaccard similarity of their token bigrams, in lower case.
    """
    # names are compared in lower case, as both engines do
    known = schema.keys() | {column for columns in schema.values() for column in columns}
    return {
        "runs": float(runs),
        "syntax": float(runs or query.tree is not None),
        "schema": float(runs or (query.tree is not None and fits(query.tree, schema, query.dialect))),
        "linking": _jaccard(named(query.tree, known), named(gold.tree, known)),
        "ngrams": _jaccard(_bigrams(query), _bigrams(gold)),
    }


def fits(tree: exp.Query, schema: Schema, dialect: str) -> bool:
    """Whether every table and column of a query is in the schema, by sqlglot's name resolution."""
    if not _tables(tree) <= schema.keys():
        return False
    typed: dict[str, object] = {table: dict.fromkeys(columns, "text") for table, columns in schema.items()}
    try:
        qualify(tree.copy(), schema=typed, dialect=dialect)
    except (SqlglotError, ValueError, RecursionError):
        return False
    return True


def named(tree: exp.Query | None, known: set[str]) -> set[Any]:
    """Tables and columns that a query names, in lower case, without its own aliases. Unknown names are kept."""
    if tree is None:
        return set()
    # an alias that equals a table or column of the schema still counts as naming it
    aliases = {alias.alias.lower() for alias in tree.find_all(exp.Alias, exp.TableAlias)} - known
    columns = {column.name.lower() for column in tree.find_all(exp.Column)}
    return {("table", name) for name in _tables(tree)} | {("column", name) for name in columns - aliases}


def _tables(tree: exp.Query) -> set[str]:
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    return {table.name.lower() for table in tree.find_all(exp.Table)} - ctes


def _bigrams(query: Query) -> set[Any]:
    return set(pairwise(word.text.lower() for word in query.words))


def _jaccard(a: set[Any], b: set[Any]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0
