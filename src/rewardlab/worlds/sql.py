"""Text-to-SQL on one small table.

    pets(name, kind, age, weight)                             SELECT name FROM pets WHERE kind = 'dog' AND age > 3;
    Which name has kind dog and age over 3?

A query is judged by what it returns on several databases that the policy never sees. Their rows are sampled until the gold query
returns something on each, and every near miss in meta["misses"] returns something else on at least one.
"""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

TRIES = 5
"""How often further databases are sampled before the question is given up."""
VALUES = range(1, 41)
NAMES = ("Ada", "Bo", "Cleo", "Dot", "Eli", "Fay", "Gus", "Hal", "Ivy", "Joe", "Kit", "Lu")


class Table(NamedTuple):
    name: str
    label: str
    kind: str
    kinds: tuple[str, ...]
    numbers: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.name}({self.label}, {self.kind}, {', '.join(self.numbers)})"


TABLES = (
    Table("pets", "name", "kind", ("cat", "dog", "bird"), ("age", "weight")),
    Table("players", "player", "team", ("red", "blue", "green"), ("goals", "games")),
    Table("shops", "owner", "town", ("Rome", "Oslo", "Lima"), ("staff", "sales")),
    Table("films", "star", "genre", ("drama", "comedy", "horror"), ("hours", "prizes")),
    Table("rooms", "guest", "floor", ("first", "second", "third"), ("nights", "beds")),
    Table("farms", "farmer", "crop", ("rice", "corn", "wheat"), ("fields", "cows")),
)

Row = tuple[Any, ...]
"""Label, kind, and the two numbers."""
Question = tuple[str, str, list[str]]
"""A question, the gold query, and its near misses."""


def sql(
    *,
    rows: PositiveInt = 8,
    instances: PositiveInt = 2,
    test_size: PositiveInt = 100,
    size: PositiveInt | None = None,
    error: Share = 0.5,
) -> Task:
    """Conditions, counts, aggregates, groups and orders over tables of `rows` rows, judged on `instances` databases.

    error: how often the teacher of `demonstrate` writes a near miss.  size: so many training problems, in epochs; None: endless.
    """
    if not 4 <= rows <= len(NAMES) or not 1 <= instances <= 10:
        raise RewardlabError(
            f"sql: rows must be between 4 and {len(NAMES)}, instances between 1 and 10, not {rows} and {instances}"
        )
    if not 0 <= error <= 1:
        raise RewardlabError(f"sql: error is a probability between 0 and 1, not {error}")
    sample, key = partial(_sample, rows=rows, instances=instances), ("sql", rows, instances)
    return Task(
        name="sql",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="sql",
        max_new=64,
        about="questions about a table, to be answered by a query",
        demonstrate=partial(_demonstrate, error=error),
        columns=("prompt", "answer", "misses", "solution"),
    )


def _sample(rng: random.Random, *, rows: int, instances: int) -> Problem:
    while True:
        table = rng.choice(TABLES)
        table_rows = sample_rows(table, rows, rng)
        question, query, misses = rng.choice(FORMS)(table, table_rows, rng)
        for _ in range(TRIES):
            databases = [
                script(table, instance) for instance in (table_rows, *(sample_rows(table, rows, rng) for _ in range(1, instances)))
            ]
            if _tells_apart(query, misses, databases):
                answer = {"query": query, "database": databases}
                return ask(f"{table}\n{question}", answer, misses=misses, solution=query)


def sample_rows(table: Table, n: int, rng: random.Random) -> list[Row]:
    """No number stands twice in a column, so that ORDER BY has one result."""
    a, b = rng.sample(VALUES, n), rng.sample(VALUES, n)
    return list(zip(rng.sample(NAMES, n), rng.choices(table.kinds, k=n), a, b, strict=True))


def script(table: Table, rows: list[Row]) -> str:
    a, b = table.numbers
    create = f"CREATE TABLE {table.name} ({table.label} TEXT, {table.kind} TEXT, {a} INTEGER, {b} INTEGER)"
    return f"{create}; INSERT INTO {table.name} VALUES {', '.join(map(str, rows))};"


def _tells_apart(query: str, misses: list[str], databases: list[str]) -> bool:
    """Whether the query returns something on every database, and each near miss something else on one of them."""
    undecided = misses
    for database in databases:
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(database)
            gold, *others = [connection.execute(text).fetchall() for text in (query, *undecided)]
        # an empty result, or an aggregate of no rows, would be equal for many wrong queries
        if gold in ([], [(None,)]):
            return False
        as_compared = Counter if "ORDER BY" not in query else list
        undecided = [miss for miss, returned in zip(undecided, others, strict=True) if as_compared(returned) == as_compared(gold)]
    return not undecided


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> str:
    return rng.choice(problem.meta["misses"]) if rng.random() < error else problem.answer["query"]


# ---- kinds of questions ----------------------------------------------------------------------------------------------


def _which(table: Table, rows: list[Row], rng: random.Random) -> Question:
    number, other_number = rng.sample(table.numbers, 2)
    _, kind, *values = rng.choice(rows)
    other_kind = rng.choice([k for k in table.kinds if k != kind])
    sign, word = rng.choice(((">", "over"), ("<", "under")))
    bound = values[table.numbers.index(number)]
    query = f"SELECT {table.label} FROM {table.name} WHERE {table.kind} = '{kind}' AND {number} {sign} {bound};"
    misses = [
        query.replace(f" {sign} ", f" {sign}= "), query.replace(kind, other_kind), query.replace(number, other_number),
        query.replace(" AND ", " OR "), query.replace(f" {sign} ", f" {'<' if sign == '>' else '>'} "),
    ]  # fmt: skip
    return f"Which {table.label} has {table.kind} {kind} and {number} {word} {bound}?", query, misses


def _how_many(table: Table, rows: list[Row], rng: random.Random) -> Question:
    number, other = rng.sample(table.numbers, 2)
    low, high = sorted(row[2:][table.numbers.index(number)] for row in rng.sample(rows, 2))
    query = f"SELECT COUNT(*) FROM {table.name} WHERE {number} BETWEEN {low} AND {high};"
    misses = [query.replace(number, other), query.replace(f"{high};", f"{high - 1};"), query.replace("BETWEEN", "NOT BETWEEN")]
    return f"How many rows have {number} from {low} to {high}?", query, misses


def _aggregate(table: Table, rows: list[Row], rng: random.Random) -> Question:
    number, other_number = rng.sample(table.numbers, 2)
    kind, other_kind = rng.sample(table.kinds, 2)
    words = {"MAX": "largest", "MIN": "smallest", "SUM": "total"}
    name, other_function = rng.sample(sorted(words), 2)
    query = f"SELECT {name}({number}) FROM {table.name} WHERE {table.kind} = '{kind}';"
    misses = [query.replace(name, other_function), query.replace(kind, other_kind), query.replace(number, other_number)]
    return f"What is the {words[name]} {number} where {table.kind} is {kind}?", query, misses


def _by_kind(table: Table, rows: list[Row], rng: random.Random) -> Question:
    number, other = rng.sample(table.numbers, 2)
    query = f"SELECT {table.kind}, SUM({number}) FROM {table.name} GROUP BY {table.kind};"
    misses = [query.replace(number, other), query.replace("SUM", "MAX"), query.replace(f"SUM({number})", "COUNT(*)")]
    return f"What is the total {number} of each {table.kind}?", query, misses


def _first(table: Table, rows: list[Row], rng: random.Random) -> Question:
    number, other = rng.sample(table.numbers, 2)
    (order, word), (other_order, _) = rng.sample((("DESC", "most"), ("ASC", "least")), 2)
    n = rng.randint(2, 3)
    query = f"SELECT {table.label} FROM {table.name} ORDER BY {number} {order} LIMIT {n};"
    misses = [query.replace(number, other), query.replace(order, other_order), query.replace(f"LIMIT {n}", f"LIMIT {n + 1}")]
    return f"Which {n} have the {word} {number}, in order? Give {table.label}.", query, misses


FORMS: tuple[Callable[[Table, list[Row], random.Random], Question], ...] = (_which, _how_many, _aggregate, _by_kind, _first)
