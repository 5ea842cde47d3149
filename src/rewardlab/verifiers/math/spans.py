"""Sets of real numbers as unions of intervals. Bounds are exact trees; floats only order them and never decide equality."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .trees import INFINITE, Tree, negative

_FUNCTIONS: dict[str, Callable[[float], float]] = {
    "ln": math.log, "abs": abs, "sin": math.sin, "cos": math.cos, "tan": math.tan,
}  # fmt: skip
BELOW_ALL = negative(INFINITE)


class Piece(NamedTuple):
    """An interval. low_in, high_in: whether the ends belong to it. A point is a closed interval of equal ends."""

    low: Tree
    high: Tree
    low_in: bool
    high_in: bool


EVERYTHING = Piece(BELOW_ALL, INFINITE, False, False)


def point(at: Tree) -> Piece:
    return Piece(at, at, True, True)


def union(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces from left to right, merged where they overlap or touch; unchanged if they cannot be ordered."""
    placed = _placed(pieces)
    if placed is None:
        return tuple(pieces)
    merged: list[Piece] = []
    for piece in placed:
        if merged and _joins(merged[-1], piece):
            last = merged[-1]
            ends = sorted([last, piece], key=lambda p: (_value(p.high), p.high_in))
            low_in = last.low_in or (piece.low_in and _value(piece.low) == _value(last.low))
            merged[-1] = Piece(last.low, ends[-1].high, low_in, ends[-1].high_in)
        else:
            merged.append(piece)
    return tuple(merged)


def intersection(a: Sequence[Piece], b: Sequence[Piece]) -> tuple[Piece, ...] | None:
    """The common part; None if the bounds cannot be ordered."""
    if _placed(a) is None or _placed(b) is None:
        return None
    common = []
    for first in a:
        for second in b:
            # of two lower bounds the greater, and of equal ones the open end
            low = max((first, second), key=lambda p: (_value(p.low), not p.low_in))
            high = min((first, second), key=lambda p: (_value(p.high), p.high_in))
            piece = Piece(low.low, high.high, low.low_in, high.high_in)
            width = _value(piece.high) - _value(piece.low)
            if width > 0 or (width == 0 and piece.low_in and piece.high_in):
                common.append(piece)
    return union(common)


def without(pieces: Sequence[Piece], points: Sequence[Tree]) -> tuple[Piece, ...] | None:
    """The pieces minus some points; None if the bounds cannot be ordered."""
    remaining: tuple[Piece, ...] | None = tuple(pieces)
    for at in points:
        complement = (Piece(BELOW_ALL, at, False, False), Piece(at, INFINITE, False, False))
        remaining = intersection(remaining, complement) if remaining is not None else None
    return remaining


def complement(pieces: Sequence[Piece]) -> tuple[Piece, ...] | None:
    """The real numbers outside the pieces; None if the bounds cannot be ordered."""
    remaining: tuple[Piece, ...] | None = (EVERYTHING,)
    for piece in pieces:
        sides = (Piece(BELOW_ALL, piece.low, False, not piece.low_in), Piece(piece.high, INFINITE, not piece.high_in, False))
        remaining = intersection(remaining, sides) if remaining is not None else None
    return remaining


def _placed(pieces: Sequence[Piece]) -> list[Piece] | None:
    if any(approximate(tree) is None for piece in pieces for tree in (piece.low, piece.high)):
        return None
    return sorted(pieces, key=lambda p: (_value(p.low), not p.low_in, _value(p.high)))


def _joins(left: Piece, right: Piece) -> bool:
    gap = _value(right.low) - _value(left.high)
    return gap < 0 or (gap == 0 and (left.high_in or right.low_in) and _value(left.high) not in (math.inf, -math.inf))


def _value(tree: Tree) -> float:
    value = approximate(tree)
    return math.nan if value is None else value


def approximate(tree: Tree) -> float | None:
    """An approximate value of a real constant; None if it has symbols or other functions."""
    try:
        return float(_float(tree))
    except (ArithmeticError, ValueError, TypeError, KeyError, RecursionError):
        return None


def _float(tree: Tree) -> float:
    head = tree[0]
    if head == "num":
        return tree[1] / tree[2]
    if head == "const":
        return {"pi": math.pi, "e": math.e, "inf": math.inf}[tree[1]]
    if head == "fn":
        return _FUNCTIONS[tree[1]](_float(tree[2]))
    if head == "sym":
        raise ValueError(f"{tree[1]} is not a constant")
    parts = [_float(part) for part in tree[1:]]
    if head == "add":
        return math.fsum(parts)
    if head == "mul":
        return math.prod(parts)
    if head == "pow":
        return parts[0] ** parts[1]
    return math.copysign(abs(parts[1]) ** (1 / parts[0]), parts[1])
