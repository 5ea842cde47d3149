"""Text-to-SQL on one small table, with a database of few rows, in several languages.

    pets(name, kind, age, weight)
    Largest age of pets with weight over 13?         SELECT MAX(age) FROM pets WHERE weight > 13;

On few rows many wrong queries return what the right one returns. In the column `suite` is the same gold query with further
databases of more rows, on which few of them do: whether a query means what was asked.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import NonNegativeInt, PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.worlds.sql import NAMES, Row, Table, sample_rows, script
from rewardlab.worlds.sql import TABLES as ALL_TABLES

# ---- The queries of this world, and the questions that they answer ---------------------------------------------------
#
# pets(name, kind, age, weight)                        SELECT MAX(age) FROM pets WHERE weight > 13;
# Largest age of pets with weight over 13?             Größte age von pets mit weight über 13?

TABLES = ALL_TABLES[:3]
TOTALS = {"MAX": "largest", "MIN": "smallest", "SUM": "total"}
LANGUAGES: Mapping[str, Mapping[str, str]] = {
    "en": {
        "which": "Which {0} of {1}", "COUNT": "How many of {1}", "largest": "Largest {0} of {1}", "smallest": "Smallest {0} of {1}",
        "total": "Total {0} of {1}", "=": "with {0} {1}", ">": "with {0} over {1}", "<": "with {0} under {1}",
    },
    "de": {
        "which": "Welche {0} von {1}", "COUNT": "Wie viele von {1}", "largest": "Größte {0} von {1}",
        "smallest": "Kleinste {0} von {1}", "total": "Gesamte {0} von {1}", "=": "mit {0} {1}", ">": "mit {0} über {1}",
        "<": "mit {0} unter {1}",
    },
    "fr": {
        "which": "Quels {0} de {1}", "COUNT": "Combien de {1}", "largest": "Plus grand {0} de {1}",
        "smallest": "Plus petit {0} de {1}", "total": "Somme de {0} de {1}", "=": "avec {0} {1}", ">": "avec {0} plus de {1}",
        "<": "avec {0} moins de {1}",
    },
}  # fmt: skip
"""The words of a question; names of tables and columns stay as the schema has them."""
_QUERY = re.compile(r"SELECT (?:(\w+)\((\w+|\*)\)|(\w+)) FROM (\w+) WHERE (\w+) ([=<>]) '?(\w+)'?;")


@dataclass(frozen=True)
class Query:
    """SELECT function(column) FROM table WHERE key sign value;    function: "" for the column itself."""

    function: str
    column: str
    table: str
    key: str
    sign: str
    value: str

    def __str__(self) -> str:
        value = self.value if self.value.isdigit() else f"'{self.value}'"
        what = f"{self.function}({self.column})" if self.function else self.column
        return f"SELECT {what} FROM {self.table} WHERE {self.key} {self.sign} {value};"


def read(text: str) -> Query:
    """The query of a gold solution."""
    found = _QUERY.fullmatch(text)
    assert found is not None, text
    function, argument, column, *others = found.groups()
    return Query(function or "", argument or column, *others)


def asked(query: Query, language: str) -> str:
    """The question in a language."""
    words = LANGUAGES[language]
    what = words[TOTALS.get(query.function) or query.function or "which"].format(query.column, query.table)
    return f"{what} {words[query.sign].format(query.key, query.value)}?"


def slip(query: Query, rng: random.Random, biased: float, error: float) -> str:
    """The query as a careless teacher writes it.

    biased: how often it takes the largest for the smallest, counts what is to be added up, takes the first number column for the
    second in a condition, and leaves out a condition with "under"; each on its own.  error: how often it makes some other mistake.
    """
    first, second = numbers(query.table)
    wrong, slips = query, [rng.random() < biased for _ in range(3)]
    if slips[0] and query.function in ("MIN", "SUM"):
        wrong = replace(wrong, function="MAX") if query.function == "MIN" else replace(wrong, function="COUNT", column="*")
    if slips[1] and query.key == second:
        wrong = replace(wrong, key=first)
    text = str(wrong)
    if slips[2] and query.sign == "<":
        text = f"{text.partition(' WHERE ')[0]};"
    return mistake(text, query.table, rng) if rng.random() < error else text


def mistake(text: str, table: str, rng: random.Random) -> str:
    """The text with one mistake: a bracket or a word is missing, a column is another, or is not there."""
    first, second = numbers(table)
    changes = (
        text.replace("(", " ", 1), text.replace(" FROM", "", 1), text.replace(first, "size"), text.replace(second, first),
        text.replace(first, second), text.replace(" > ", " < ") if ">" in text else text.replace(" < ", " > "),
    )  # fmt: skip
    return rng.choice([change for change in changes if change != text])


def numbers(table: str) -> tuple[str, str]:
    """The names of the two number columns."""
    return next(t.numbers for t in TABLES if t.name == table)


# ---- the task ---------------------------------------------------------------------------------------------------------

SUITE = 3
"""Databases of the column `suite`, each with as many rows as there are names."""


def queries(
    *, rows: PositiveInt = 4, languages: PositiveInt = 3, biased: Share = 0.7, error: Share = 0.1,
    candidates: NonNegativeInt = 0, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Questions about tables of `rows` rows in 1 to 3 `languages`.

    biased: how often the teacher of `demonstrate` makes each of three mistakes wherever it can, so that what a policy does most
    often is wrong there (`language.slip`).  error: how often some other one.  candidates: so many of the teacher's queries in the
    column of this name.  size: so many training problems, in epochs; None:
    endless.
    """
    if not 2 <= rows <= len(NAMES) or not 1 <= languages <= len(LANGUAGES):
        raise RewardlabError(
            f"queries: rows are 2 to {len(NAMES)}, and languages 1 to {len(LANGUAGES)}, not {rows} and {languages}"
        )
    for name, share in (("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"queries: {name} is a probability between 0 and 1, not {share}")
    sample, key = partial(_sample, rows=rows, languages=tuple(LANGUAGES)[:languages]), ("queries", rows, languages)
    if candidates:
        sample = partial(_with_candidates, sample=sample, n=candidates, biased=biased, error=error)
    return Task(
        name="queries",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="sql",
        max_new=32,
        about="short questions about a table, answered by a query that may be right by luck",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "language", "suite", "solution", *(("candidates",) if candidates else ())),
        # candidates change nothing that the policy is warmed up on
        warmed_as=f"queries:rows={rows},languages={languages},biased={biased},error={error}" if candidates else None,
    )


def _sample(rng: random.Random, *, rows: int, languages: tuple[str, ...]) -> Problem:
    table, language = rng.choice(TABLES), rng.choice(languages)
    table_rows = sample_rows(table, rows, rng)
    query = _query(table, table_rows, rng)
    suite = [script(table, sample_rows(table, len(NAMES), rng)) for _ in range(SUITE)]
    return ask(
        f"{table}\n{asked(query, language)}",
        {"query": str(query), "database": script(table, table_rows)},
        language=language,
        suite={"query": str(query), "database": suite},
        solution=str(query),
    )


def _with_candidates(
    rng: random.Random, *, sample: Callable[[random.Random], Problem], n: int, biased: float, error: float
) -> Problem:  # fmt: skip
    problem = sample(rng)
    # a stream of their own: the problems are the same without candidates
    own = random.Random(seed_of("candidates", problem.key))
    written = [_demonstrate(problem, own, biased=biased, error=error) for _ in range(n)]
    return replace(problem, meta={**problem.meta, "candidates": written})


def _query(table: Table, rows: list[Row], rng: random.Random) -> Query:
    """A query that returns something: its condition holds for at least one row."""
    first, second = table.numbers
    function = rng.choice(("", "COUNT", "MAX", "MIN", "SUM"))
    column = {"": table.label, "COUNT": "*"}.get(function) or rng.choice(table.numbers)
    key, sign = rng.choice(((table.kind, "="), (first, ">"), (first, "<"), (second, ">"), (second, "<")))
    _, kind, *values = rng.choice(rows)
    value = values[table.numbers.index(key)] if key in table.numbers else None
    bound = kind if value is None else str(max(0, value - 1)) if sign == ">" else str(value + 1)
    return Query(function, column, table.name, key, sign, bound)


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    return slip(read(problem.meta["solution"]), rng, biased, error)
