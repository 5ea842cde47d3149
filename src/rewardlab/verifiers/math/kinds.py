"""The kinds of answers, as plain tuples."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

from .spans import Piece
from .trees import Tree


class Value(NamedTuple):
    """An expression.

    percent: it was written in percent; the tree holds the fraction (1/2 for 50%).  letters: how it is written, if in letters only.
    """

    tree: Tree
    unit: str = ""
    percent: bool = False
    letters: str = ""


class Ordered(NamedTuple):
    """A tuple, a point, or an interval with two ends; `brackets` is the pair around it, such as "(]"."""

    items: tuple[Answer, ...]
    brackets: str


class Finite(NamedTuple):
    """A finite set."""

    items: tuple[Answer, ...]


class Several(NamedTuple):
    """Answers in any order.

    run_on: they may be one number with a decimal comma, as in 5,5.  joined: "or" or "and", whichever is written between them.
    """

    items: tuple[Answer, ...]
    run_on: bool = False
    joined: str = ""


class Parts(NamedTuple):
    """Answers to the parts of a question, in their order."""

    items: tuple[Answer, ...]


class Span(NamedTuple):
    """A set of real numbers, perhaps as a condition on a variable."""

    pieces: tuple[Piece, ...]
    variable: str = ""


class Matrix(NamedTuple):
    """Rows of entries. style: "|" for a determinant, else ""."""

    rows: tuple[tuple[Tree, ...], ...]
    style: str


class Relation(NamedTuple):
    """An equation or inequality. sign: = < <= or !="""

    sign: str
    left: Tree
    right: Tree


class Named(NamedTuple):
    """name = answer.  kind: of the name: symbol, function (f(x)), word, or shape (angle ABC)."""

    name: str
    kind: str
    answer: Answer


class Ratio(NamedTuple):
    """a : b.  clock: the last part has two digits, as in 12:05.  unit: what follows, as in 12:05 pm."""

    parts: tuple[Tree, ...]
    clock: bool
    unit: str


class Based(NamedTuple):
    """A number in a base other than ten, as it is spelled."""

    digits: str
    base: str


class Words(NamedTuple):
    """An answer in words, compared as text."""

    text: str


Answer = Value | Ordered | Finite | Several | Parts | Span | Matrix | Relation | Named | Ratio | Based | Words


_KINDS = {kind.__name__: kind for kind in (*get_args(Answer), Piece)}


def packed(part: Any) -> Any:
    """An answer as plain data, which JSON keeps."""
    if not isinstance(part, tuple):
        return part
    fields = [packed(field) for field in part]
    return {type(part).__name__: fields} if type(part) is not tuple else fields


def unpacked(part: Any) -> Any:
    """The answer that `packed` made plain data of."""
    if isinstance(part, dict):
        ((kind, fields),) = part.items()
        return _KINDS[kind](*map(unpacked, fields))
    return tuple(map(unpacked, part)) if isinstance(part, list) else part
