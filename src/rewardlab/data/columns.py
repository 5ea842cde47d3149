"""The columns that a method reads, a sentence on each, and template rows that it trains on as they are.

    data = Data(
        answer="the gold answer",
        hint=Column("a first step of a solution, shown where all replies are wrong", optional=True),
        rows=[{"prompt": "What is 2 + 3?", "answer": "5", "hint": "count on from 2"}, {"prompt": "What is 4 + 5?", "answer": "9"}],
    )

A method's file states it beside its recipe, as a literal, so that `list`, `show` and the docs read it without importing the file.
"""

from __future__ import annotations

import ast
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardlab.errors import RewardlabError

from .files import Row, encoded
from .values import MISSING, number_of, value_of

PROBLEMS: tuple[Row, ...] = (
    {"prompt": "Ann has 3 apples and buys 2 bags of 4. How many has she?", "answer": "11"},
    {"prompt": "A book costs $12 and a pen a third of that. What do both cost, in dollars?", "answer": "16"},
    {"prompt": "What is $2^5 - 7$?", "answer": "25"},
)
PAIRS: tuple[Row, ...] = (
    {"prompt": "Name a planet.", "chosen": "Mars.", "rejected": "There are many planets, of which one is Mars."},
    {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
    {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
)
"""Template rows of methods that read problems with answers, or pairs of replies, and nothing of their own."""

PROMPT = "the question: a text, or a list of messages"
BESIDES = ("rows", "settings", "verified_by", "named_by", "refuses", "again", "visits", "idle")
SHOWN = 3
"""Places of a missing column that a message names."""


@dataclass(frozen=True)
class Column:
    """What a column holds, in one sentence.

    optional: rows may lack it, or leave it empty; so may all where only some settings read it.
    setting: of a part of the method, which may name another column in its place ("column"; "fields[0]": the first of a list).
    needed_with: a setting of a part, and the values with which no row may lack it after all.
    number: it holds a number, also as text; where it must not be lacking, anything else counts as lacking.
    some: rows may lack it, but not all of them: in some it must hold something else than false.
    """

    says: str
    optional: bool = False
    setting: str = ""
    needed_with: Sequence[str] = ()
    number: bool = False
    some: bool = False

    def holds(self, value: Any) -> bool:
        """Whether a row with this value has the column."""
        return number_of(value) is not None if self.number else value is not None and not is_blank(value)


class Data:
    """The rows that a method reads.

    columns: name to a sentence (every row must have it) or a Column; `prompt` is implied, and its sentence may be given.
    rows: template rows as JSON holds them, of two different prompts at least, since one is held out; without any, word problems
    with answers, or pairs of replies, where these columns will do.
    settings: without which the method does not run on them, a judge or a corpus, say.
    verified_by: the verifier of rows in a file, unless another is named; "": `final_answer`.
    named_by: a setting of a part that lists further columns, of numbers: rows may lack one, but not all of them the same one.
    refuses: why no rows of text can be given, instead of columns and rows ("denoises vectors").
    again: what the method does only where rows come again ("compares replies with earlier ones"); "" for one to which it is the
    same.  visits: of each row, from which on it does it.
    idle: what becomes of the method where no row has a column that rows may lack, or one of several: {"hint, solution": "gives no
    group a hint"}. Not said where no part has the column's `setting`, since then none reads it.
    """

    def __init__(
        self, *, rows: Iterable[Row] = (), settings: Mapping[str, Any] | None = None, verified_by: str = "",
        named_by: str = "", refuses: str = "", again: str = "", visits: int = 2,
        idle: Mapping[str, str] | None = None, **columns: str | Column,
    ) -> None:  # fmt: skip
        told = {"prompt": PROMPT, **columns} if not refuses else columns
        self.columns = {name: Column(of) if isinstance(of, str) else of for name, of in told.items()}
        self.settings, self.verified_by, self.named_by, self.refuses = dict(settings or {}), verified_by, named_by, refuses
        self.again, self.visits, self.idle = again, visits, dict(idle or {})
        self.rows = list(rows) or self._plain()
        self._check()

    def _plain(self) -> list[Row]:
        """Rows of problems or of pairs, if they hold what is required and nothing that is not described."""
        fits = (rows for rows in (PROBLEMS, PAIRS) if {*self.required} <= rows[0].keys() <= self.columns.keys())
        return list(next(fits, ()))

    def _check(self) -> None:
        if unknown := {name for names in self.idle for name in names.split(", ")} - self.columns.keys():
            raise RewardlabError(f"Data: idle names {', '.join(sorted(unknown))}, which is no column")
        if self.refuses and (self.columns or self.rows):
            raise RewardlabError("Data: what refuses rows has neither columns nor rows")
        if not self.refuses and len({str(row.get("prompt")) for row in self.rows}) < 2:
            raise RewardlabError("Data: give template rows, of two different prompts at least")
        for number, row in enumerate(self.rows, 1):
            if absent := [name for name in self.required if row.get(name) is None]:
                raise RewardlabError(f"Data: template row {number} lacks {', '.join(absent)}")
            if unsaid := row.keys() - self.columns.keys():
                raise RewardlabError(f"Data: template row {number} has columns that are not described: {', '.join(sorted(unsaid))}")

    @property
    def required(self) -> list[str]:
        return [name for name, column in self.columns.items() if not (column.optional or column.some)]

    @classmethod
    def of(cls, node: ast.expr) -> Data:
        """The statement `Data(...)` of a file, from its syntax tree. Raises ValueError unless all of it is literal."""
        return cls(**_arguments(node))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Data:
        # a cache that an older version wrote lacks what was added since
        besides = {name: document[name] for name in BESIDES if name in document}
        columns: Any = {name: Column(*column) for name, column in document["columns"].items()}
        return cls(**besides, **columns)

    def to_json(self) -> dict[str, Any]:
        columns = {name: [c.says, c.optional, c.setting, list(c.needed_with), c.number, c.some] for name, c in self.columns.items()}
        besides = {name: getattr(self, name) for name in BESIDES}
        return {"columns": columns, **besides}

    def __or__(self, other: Data) -> Data:
        """What a stack of two methods reads: what either needs is needed. Template rows are joined where both have them."""
        if self.refuses or other.refuses:
            return self if self.refuses else other
        names = [*self.columns, *(name for name in other.columns if name not in self.columns)]
        joined: Any = {name: _needed([of.columns[name] for of in (self, other) if name in of.columns]) for name in names}
        rows = [a | b for a, b in zip(self.rows, _again(other.rows, len(self.rows)), strict=True)] if other.rows else self.rows
        settings = self.settings | other.settings
        verified, named = self.verified_by or other.verified_by, self.named_by or other.named_by
        again = ", and ".join(filter(None, (self.again, other.again)))
        visits = max((of.visits for of in (self, other) if of.again), default=self.visits)
        besides: Any = {"again": again, "visits": visits, "idle": self.idle | other.idle}
        return Data(rows=rows, settings=settings, verified_by=verified, named_by=named, **besides, **joined)

    def jsonl(self) -> str:
        """The template rows, one a line."""
        return "".join(map(encoded, self.rows))

    def command(self, method: str, verb: str = "train") -> str:
        """How the method is run on the template rows, or on others like them.  verb: "answer" for what trains nothing."""
        verifier = f" --verifier {self.verified_by}" if self.verified_by else ""
        settings = "".join(f" --{name.replace('_', '-')} {_typed(value)}" for name, value in self.settings.items())
        return f"rewardlab {verb} {method} --task rows.jsonl --model hf:FOLDER{verifier}{settings}"

    def missing(self, rows: Iterable[tuple[str, Row]], settings: Mapping[str, Any] | None = None) -> dict[str, list[str]]:
        """Name of each required column that a row lacks or leaves empty, and the places of those rows.

        rows: place and columns.  settings: of the method's parts, some of which may name other columns.
        """
        given = settings or {}
        needed = [name for name, c in self.columns.items() if c.needed_with and given.get(c.needed_with[0]) in c.needed_with[1:]]
        named = {name: given.get(self.columns[name].setting) or name for name in (*self.required, *needed)}
        found: dict[str, list[str]] = {}
        for place, row in rows:
            for name, column in named.items():
                if not self.columns[name].holds(row.get(column)):
                    found.setdefault(name, []).append(f"{place}, empty" if is_blank(row.get(column)) else place)
        return found

    def nowhere(self, rows: Iterable[Row]) -> dict[str, list[str]]:
        """The columns that some rows must have and none of these has, as `refuse` takes them: with no place."""
        wanted = {name for name, c in self.columns.items() if c.some}
        for row in rows:
            wanted -= {name for name in wanted if is_true(row.get(name))}
        return {name: [] for name in sorted(wanted)}

    def idle_on(self, rows: Iterable[Row], settings: Mapping[str, Any]) -> dict[str, str]:
        """What `idle` says of columns that none of these rows has, by their names there.  settings: of the method's parts."""
        held = list(rows)
        found = {}
        for names, says in self.idle.items():
            columns = {name: self.columns[name].setting for name in names.split(", ")}
            if any(setting and setting not in settings for setting in columns.values()):
                continue
            own = [settings.get(setting) or name for name, setting in columns.items()]
            if not any(is_true(value_of(row, name)) for row in held for name in own):
                found[" or ".join(own)] = says
        return found

    def unrated(self, rows: Iterable[tuple[str, Row]], settings: Mapping[str, Any]) -> list[str]:
        """The columns that the setting `named_by` lists in which no row has a number.  settings: as of `missing`."""
        listed = [value for key, value in settings.items() if self.named_by and key.startswith(f"{self.named_by}[")]
        held = [row for _, row in rows]
        return [name for name in dict.fromkeys(listed) if all(number_of(row.get(name)) is None for row in held)]

    def refuse(self, method: str, missing: Mapping[str, list[str]], instead: str = "") -> RewardlabError:
        """An error that names every missing column, with its sentence and where it is missing.  instead: what reads the rows."""
        shown = 1 if instead else SHOWN
        none = {name: "no number" if self.columns[name].number else "none" for name in missing}
        told = (f"  {name}: {self.columns[name].says} ({none[name]} {_places(at, shown)})" for name, at in missing.items())
        listed = "\n".join(told)
        what = "a column" if len(missing) == 1 else f"{len(missing)} columns"
        return RewardlabError(
            f"{method} needs {what} that the data lacks:\n{listed}\n"
            + (f"{instead}\n" if instead else "")
            + f"rows as it takes them: rewardlab show {method} --rows > rows.jsonl"
        )


def is_blank(value: Any) -> bool:
    """Whether it is a text without a word in it: the column is there, and says nothing."""
    return isinstance(value, str) and not value.strip()


def is_true(value: Any) -> bool:
    """Whether it says something else than false: a flag may be a number, also as text. An empty list says nothing."""
    number = number_of(value)
    return bool(number) if number is not None else value not in (None, MISSING, [], {}) and not is_blank(value)


def _typed(value: Any) -> str:
    """A setting as it is typed in a shell."""
    return shlex.quote(value if isinstance(value, str) else json.dumps(value))


def _needed(columns: list[Column]) -> Column:
    """The strictest of what several methods say of a column: needed in all rows, then in some."""
    return min(columns, key=lambda column: (column.optional or column.some, column.optional))


def _again(rows: list[Row], n: int) -> list[Row]:
    return [rows[i % len(rows)] for i in range(n)]


def _places(places: list[str], shown: int) -> str:
    if not places:
        return "in any row"
    more = len(places) - shown
    return f"at {'; '.join(places[:shown])}" + (f"; and {more:,} more" if more > 0 else "")


def _arguments(node: ast.expr) -> dict[str, Any]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "Data" or node.args:
        raise ValueError(f"data = {ast.unparse(node)[:60]} must be Data(...), with arguments by name")
    return {keyword.arg or "**": _value(keyword.value) for keyword in node.keywords}


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Column":
        told = [ast.literal_eval(arg) for arg in node.args]
        return Column(*told, **{keyword.arg or "**": ast.literal_eval(keyword.value) for keyword in node.keywords})
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(
            f"{ast.unparse(node)[:60]} in Data(...) must be a literal, to be read without importing the file"
        ) from None
