"""Table questions: a reply cites the cells that it reads, then answers. A reply cites the cells that it reads, then answers.

    name age weight
    Ada 3 7
    Bo 5 7
    What is the weight of Bo?          <|Bo|><|name|><|7|><|weight|>
                                       Answer: 7

Numbers have one digit, so that a wrong cell often gives the right answer: whether a statement is true can be guessed, too. What
should be read is in the column `evidence`, as a list of {"value", "column"}.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

NAMES = ("Ada", "Bo", "Cleo", "Dot", "Eli", "Fay", "Gus", "Hal")
COLUMNS = (("age", "weight"), ("goals", "games"), ("hours", "prizes"))
KINDS = ("value", "most", "true")
DIGITS = range(1, 10)


class Cell(NamedTuple):
    value: str
    column: str


class Table(NamedTuple):
    """Rows of a name and two numbers."""

    columns: tuple[str, str]
    rows: list[tuple[str, int, int]]

    def __str__(self) -> str:
        return "\n".join([f"name {' '.join(self.columns)}", *(" ".join(map(str, row)) for row in self.rows)])

    def number(self, row: int, column: str) -> int:
        _, first, second = self.rows[row]
        return first if column == self.columns[0] else second


def cells(
    *,
    rows: PositiveInt = 4,
    biased: Share = 0.65,
    error: Share = 0.1,
    test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:
    """Values, the row with the most, and statements to be judged, in tables of `rows` rows.

    biased: how often the teacher of `demonstrate` reads the other column of numbers, so that what a policy does most often is
    right by luck alone.  error: how often it reads another row.  size: so many training problems, in epochs; None: endless.
    """
    if not 2 <= rows <= len(NAMES):
        raise RewardlabError(f"cells: rows must be between 2 and {len(NAMES)}, not {rows}")
    for name, share in (("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"cells: {name} is a probability between 0 and 1, not {share}")
    sample, key = partial(_sample, rows=rows), ("cells", rows)
    return Task(
        name="cells",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_answer",
        max_new=40,
        about="questions and statements about a table, answered with the cells that were read",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "table", "asked", "evidence", "solution"),
    )


def _sample(rng: random.Random, *, rows: int) -> Problem:
    columns, names = rng.choice(COLUMNS), rng.sample(NAMES, rows)
    # no number twice in a column: one row has the most
    table = Table(columns, list(zip(names, rng.sample(DIGITS, rows), rng.sample(DIGITS, rows), strict=True)))
    kind, column, row = rng.choice(KINDS), rng.choice(columns), rng.randrange(rows)
    if kind == "most":
        row = max(range(rows), key=lambda i: table.number(i, column))
    claimed = table.number(row, column) if rng.random() < 0.5 else rng.choice(DIGITS)
    question = {
        "value": f"What is the {column} of {names[row]}?",
        "most": f"Which name has the most {column}?",
        "true": f"{names[row]} has {column} {claimed}. Yes or no?",
    }[kind]
    asked = {"kind": kind, "column": column, "row": row, "claimed": claimed}
    read, answer = _read(table, asked, column, row)
    evidence, solution = [cell._asdict() for cell in read], _said(read, answer)
    return ask(f"{table}\n{question}", answer, table=str(table), asked=asked, evidence=evidence, solution=solution)


def _read(table: Table, asked: Mapping[str, Any], column: str, row: int) -> tuple[list[Cell], str]:
    """The cells that are read, in this column and row, and the answer that they give to what is asked."""
    name, value = table.rows[row][0], str(table.number(row, column))
    answer = {"value": value, "most": name, "true": "yes" if value == str(asked["claimed"]) else "no"}[asked["kind"]]
    return [Cell(name, "name"), Cell(value, column)], answer


def _said(read: list[Cell], answer: str) -> str:
    return "".join(f"<|{cell.value}|><|{cell.column}|>" for cell in read) + f"\nAnswer: {answer}"


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    asked, table = problem.meta["asked"], _parsed(problem.meta["table"])
    column, row, rows = asked["column"], asked["row"], range(len(table.rows))
    if rng.random() < biased:
        column = next(c for c in table.columns if c != column)
        # the row with the most in the other column
        row = max(rows, key=lambda i: table.number(i, column)) if asked["kind"] == "most" else row
    if rng.random() < error:
        row = rng.choice([i for i in rows if i != row])
    return _said(*_read(table, asked, column, row))


def _parsed(text: str) -> Table:
    (_, first, second), *rows = (line.split() for line in text.split("\n"))
    return Table((first, second), [(name, int(a), int(b)) for name, a, b in rows])
