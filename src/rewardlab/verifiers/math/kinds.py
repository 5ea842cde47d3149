"""Kinds of answers."""

from __future__ import annotations

from typing import NamedTuple

from .spans import Piece
from .trees import Tree


class Value(NamedTuple):
    """percent: it was written in percent; the tree is the fraction that this is."""

    tree: Tree
    unit: str = ""
    percent: bool = False


class Ordered(NamedTuple):
    """A tuple, a point, or an interval with two ends; brackets tells which pair stands around it."""

    items: tuple[Answer, ...]
    brackets: str


class Finite(NamedTuple):
    items: tuple[Answer, ...]


class Several(NamedTuple):
    """Answers in any order."""

    items: tuple[Answer, ...]


class Span(NamedTuple):
    """A set of real numbers, perhaps as a condition on a variable."""

    pieces: tuple[Piece, ...]
    variable: str = ""


class Matrix(NamedTuple):
    """style: "|" for a determinant."""

    rows: tuple[tuple[Tree, ...], ...]
    style: str


class Relation(NamedTuple):
    """sign: = < <= or !="""

    sign: str
    left: Tree
    right: Tree


class Named(NamedTuple):
    """name = answer.  kind: symbol, function (f(x)), word, or shape (angle ABC)."""

    name: str
    kind: str
    answer: Answer


class Ratio(NamedTuple):
    """clock: the last part has two digits, as in 12:05.  unit: what follows, as in 12:05 pm."""

    parts: tuple[Tree, ...]
    clock: bool
    unit: str


class Based(NamedTuple):
    """A number in another base than ten."""

    digits: str
    base: str


class Words(NamedTuple):
    text: str


Answer = Value | Ordered | Finite | Several | Span | Matrix | Relation | Named | Ratio | Based | Words
