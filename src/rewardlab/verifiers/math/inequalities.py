"""Solve inequalities in one variable where that is a matter of notation: linear ones, absolute values, double bounds."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from .exact import linear, rational
from .kinds import Answer, Relation, Several, Span
from .spans import BELOW_ALL, EVERYTHING, Piece, intersection, without
from .trees import INFINITE, Tree, names, negative, number

_WRITTEN = {"<": "<", "le": "<="}

Sign = str
"""< or le"""


def unequal(left: Tree, right: Tree) -> Answer:
    for variable, excluded in ((left, right), (right, left)):
        if variable[0] == "sym" and not names(excluded):
            pieces = without((EVERYTHING,), [excluded])
            if pieces is not None:
                return Span(pieces, variable[1])
    return Relation("!=", left, right)


def inequality(sides: Sequence[Tree], signs: Sequence[Sign], functions: Sequence[str]) -> Answer:
    """a < x, or a < x < b; the smallest side comes first.  functions: "f(x)" for a side that is a function's name, else ""."""
    steps = list(zip(range(len(signs)), signs, strict=True))
    solved = [
        _with_function(sides[i : i + 2], functions[i : i + 2], sign) or _solved(sides[i], sides[i + 1], sign) for i, sign in steps
    ]
    spans = [span for span in solved if span is not None]
    if len(spans) == len(signs) and len({span.variable for span in spans}) == 1:
        pieces = spans[0].pieces
        for span in spans[1:]:
            common = intersection(pieces, span.pieces)
            if common is None:
                # the bounds of a < x < b cannot be ordered where they have symbols; they are taken as they are written
                return _bounded(sides, signs) or _written(sides, signs)
            pieces = common
        return Span(pieces, spans[0].variable)
    return _bounded(sides, signs) or _written(sides, signs)


def _bounded(sides: Sequence[Tree], signs: Sequence[Sign]) -> Span | None:
    if len(sides) == 3 and sides[1][0] == "sym" and not names(sides[0]) | names(sides[2]):
        return Span((Piece(sides[0], sides[2], signs[0] == "le", signs[1] == "le"),), sides[1][1])
    return None


def _written(sides: Sequence[Tree], signs: Sequence[Sign]) -> Answer:
    items = [Relation(_WRITTEN[sign], sides[i], sides[i + 1]) for i, sign in enumerate(signs)]
    return items[0] if len(items) == 1 else Several(tuple(items))


def _below(at: Tree, closed: bool) -> Piece:
    return Piece(BELOW_ALL, at, False, closed)


def _above(at: Tree, closed: bool) -> Piece:
    return Piece(at, INFINITE, closed, False)


def _with_function(sides: Sequence[Tree], functions: Sequence[str], sign: Sign) -> Span | None:
    """f(x) < b bounds the values of f(x)."""
    (left, right), closed = sides, sign == "le"
    if functions[0] and not names(right):
        return Span((_below(right, closed),), functions[0])
    if functions[1] and not names(left):
        return Span((_above(left, closed),), functions[1])
    return None


def _solved(left: Tree, right: Tree, sign: Sign) -> Span | None:
    closed = sign == "le"
    if left[0] == "sym" and not names(right):
        return Span((_below(right, closed),), left[1])
    if right[0] == "sym" and not names(left):
        return Span((_above(left, closed),), right[1])
    if (found := _absolute(left, right, closed)) is not None:
        return found
    # 2x + 1 < 5 is the interval x < 2
    if line := linear(left, right):
        piece = _below(number(line.root), closed) if line.slope > 0 else _above(number(line.root), closed)
        return Span((piece,), line.name)
    return None


def _absolute(left: Tree, right: Tree, closed: bool) -> Span | None:
    """|a x + b| < c is an interval, and |a x + b| > c two of them, for real x and positive rational c, or any constant if a = 1."""
    inside, bound = (left, right) if left[:2] == ("fn", "abs") else (right, left)
    if inside[:2] != ("fn", "abs") or names(bound):
        return None
    line = linear(inside[2], number(0))
    if line is None:
        return None
    value = rational(bound)
    if value is not None and value > 0:
        reach = value / abs(line.slope)
        low, high = number(line.root - reach), number(line.root + reach)
    elif value is None and line.slope in (1, -1) and line.root == 0 and _positive(bound):
        low, high = negative(bound), bound
    else:
        return None
    if inside is left:
        return Span((Piece(low, high, closed, closed),), line.name)
    return Span((_below(low, closed), _above(high, closed)), line.name)


def _positive(bound: Tree) -> bool:
    """Whether a constant is known to be positive: (-oo, 0] and it have nothing in common."""
    zero = number(Fraction(0))
    return intersection((_below(zero, True),), (Piece(bound, bound, True, True),)) == ()
