"""Parse matrices, and evaluate sums, products, powers, transposes and determinants of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

from .kinds import Matrix, Value
from .layout import closing, cut, inside, rows_of
from .polynomials import bits_of, cost, count
from .text import Token, Unreadable
from .trees import Tree, number, over, times
from .values import value

ENVIRONMENTS = ("pmatrix", "bmatrix", "vmatrix", "matrix", "array", "Bmatrix", "Vmatrix", "smallmatrix")
LARGEST = 8
"""Most rows and columns of a matrix that is computed with."""
HIGHEST = 12
"""Highest power of a matrix that is computed."""
LONGEST = 10_000
"""Most bits of a number that is computed."""
HEAVIEST = 2000
"""Most numbers and symbols in a product of matrices with symbols."""
_MINUS_ONE = Value(number(-1))
_BEGIN = tuple(f"begin{{{name}}}" for name in ENVIRONMENTS)


Rows = tuple[tuple[Tree, ...], ...]


def begins(token: Token) -> bool:
    return token.text in _BEGIN


def matrix(tokens: Sequence[Token]) -> Matrix | Value | None:
    """What an expression with matrices comes to, a matrix or a number; None if there is no matrix in it. Raises Unreadable."""
    if not any(begins(token) for token in tokens):
        return None
    if begins(tokens[0]) and closing(tokens, 0) == len(tokens) - 1:
        return _written(tokens)
    return _sum(tokens)


def _written(tokens: Sequence[Token]) -> Matrix:
    rows = rows_of(tokens, ENVIRONMENTS)
    if not rows:
        raise Unreadable("a matrix without rows")
    entries = tuple(tuple(_entry(part) for part in cut(row, ("&",))[0]) for row in rows)
    if len({len(row) for row in entries}) != 1:
        raise Unreadable("the rows of the matrix differ in length")
    return Matrix(entries, "|" if inside(tokens[0].text) == "vmatrix" else "")


def _entry(tokens: Sequence[Token]) -> Tree:
    while tokens and tokens[-1].text in (".", ",", ";", "\\\\"):
        tokens = tokens[:-1]
    return value(tokens).tree


# ---- the grammar -----------------------------------------------------------------------------------------------------


def _sum(tokens: Sequence[Token]) -> Matrix | Value:
    parts, signs = cut(tokens, ("+", "-"))
    signs = ["+", *signs]
    if not parts[0]:
        parts, signs = parts[1:], signs[1:]
    terms = [_product(part) if sign == "+" else _times(_MINUS_ONE, _product(part)) for part, sign in zip(parts, signs, strict=True)]
    return reduce(_plus, terms)


def _product(tokens: Sequence[Token]) -> Matrix | Value:
    factors: list[Matrix | Value] = []
    scalars: list[Token] = []
    at = 0
    while at < len(tokens):
        of_determinant = tokens[at].text == "det" and at + 1 < len(tokens)
        start = at + of_determinant
        end = closing(tokens, start) + 1
        if not end:
            raise Unreadable("a bracket is not closed")
        if any(begins(token) for token in tokens[start:end]):
            item = _primary(tokens[start:end], of_determinant)
            exponent, at = _exponent(tokens, end)
            factors += [*_scalar(scalars), _raised(item, exponent) if exponent else item]
            scalars = []
        else:
            scalars += tokens[at:end]
            at = end
    factors += _scalar(scalars)
    if not factors:
        raise Unreadable("a term is missing")
    return reduce(_times, factors)


def _primary(tokens: Sequence[Token], of_determinant: bool) -> Matrix | Value:
    """A matrix, or an expression in brackets; a determinant as a number."""
    item = _written(tokens) if begins(tokens[0]) else _sum(tokens[1:-1])
    if isinstance(item, Matrix) and (of_determinant or item.style == "|"):
        return Value(determinant(item.rows))
    if of_determinant:
        raise Unreadable("the determinant of a number")
    return item


def _scalar(tokens: Sequence[Token]) -> list[Value]:
    """The factor between two matrices, if there is one."""
    while tokens and tokens[0].text == "*":
        tokens = tokens[1:]
    while tokens and tokens[-1].text == "*":
        tokens = tokens[:-1]
    if not tokens:
        return []
    if tokens[0].text == "/":
        return [Value(over(number(1), _entry(tokens[1:])))]
    return [Value(_entry(tokens))]


def _exponent(tokens: Sequence[Token], at: int) -> tuple[str, int]:
    """What stands after ^ at a position ("" if nothing does), and the position after it."""
    if at + 1 >= len(tokens) or tokens[at].text != "^":
        return "", at
    end = closing(tokens, at + 1) + 1
    return "".join(token.text for token in tokens[at + 1 : end] if token.text not in "{}()"), end or len(tokens)


# ---- arithmetic ------------------------------------------------------------------------------------------------------


def _raised(item: Matrix | Value, exponent: str) -> Matrix | Value:
    if isinstance(item, Value):
        raise Unreadable("a power of a determinant")
    if exponent in ("T", "top", "t", "'"):
        return Matrix(tuple(zip(*item.rows, strict=True)), item.style)
    whole = exponent.removeprefix("-")
    plain = all(entry[0] == "num" for row in item.rows for entry in row)
    if not whole.isdigit() or not 1 <= int(whole) <= (HIGHEST if plain else 3):
        raise Unreadable(f"the power {exponent} of a matrix")
    factors: list[Matrix | Value] = [_inverse(item) if exponent[0] == "-" else item]
    return reduce(_times, factors * int(whole))


def _plus(a: Matrix | Value, b: Matrix | Value) -> Matrix | Value:
    if isinstance(a, Value) and isinstance(b, Value):
        return Value(_added([a.tree, b.tree]))
    if not (isinstance(a, Matrix) and isinstance(b, Matrix)) or _shape(a) != _shape(b):
        raise Unreadable("a sum of different shapes")
    rows = zip(a.rows, b.rows, strict=True)
    return Matrix(tuple(tuple(_added([x, y]) for x, y in zip(*pair, strict=True)) for pair in rows), "")


def _times(a: Matrix | Value, b: Matrix | Value) -> Matrix | Value:
    if isinstance(a, Value) and isinstance(b, Value):
        return Value(_multiplied(a.tree, b.tree))
    if isinstance(a, Matrix) and isinstance(b, Matrix):
        if _shape(a)[1] != _shape(b)[0] or max(*_shape(a), *_shape(b)) > LARGEST:
            raise Unreadable("a product of shapes that do not fit")
        if _weight(a) * _weight(b) > HEAVIEST:
            raise Unreadable("a product that is too long")
        columns = list(zip(*b.rows, strict=True))
        rows = tuple(
            tuple(_added([_multiplied(x, y) for x, y in zip(row, column, strict=True)]) for column in columns) for row in a.rows
        )
        return Value(rows[0][0]) if len(rows) == len(columns) == 1 else Matrix(rows, "")
    whole, factor = (a, b) if isinstance(a, Matrix) else (b, a)
    assert isinstance(whole, Matrix)
    assert isinstance(factor, Value)
    return Matrix(tuple(tuple(_multiplied(factor.tree, entry) for entry in row) for row in whole.rows), whole.style)


def _shape(item: Matrix) -> tuple[int, int]:
    return len(item.rows), len(item.rows[0])


def _weight(item: Matrix) -> int:
    """The leaves of all entries, if they have symbols. Trees share their parts, so a short tree may be long to walk."""
    entries = [entry for row in item.rows for entry in row]
    return 1 if all(entry[0] == "num" for entry in entries) else sum(map(_leaves, entries))


def _leaves(tree: Tree) -> int:
    return sum(_leaves(part) for part in tree[1:] if isinstance(part, tuple)) or 1


def determinant(rows: Rows) -> Tree:
    """By expansion along the first row. Raises Unreadable."""
    if len(rows) != len(rows[0]) or len(rows) > 5 or _weight(Matrix(rows, "")) > HEAVIEST // 20:
        raise Unreadable("a determinant that is not computed")
    if len(rows) == 1:
        return rows[0][0]
    terms = []
    for column, entry in enumerate(rows[0]):
        minor = determinant(_without(rows, 0, column))
        terms.append(_multiplied(number(-1 if column % 2 else 1), _multiplied(entry, minor)))
    return _added(terms)


def _inverse(item: Matrix) -> Matrix:
    """By cofactors. Raises Unreadable."""
    size = len(item.rows)
    total = determinant(item.rows)
    if total == number(0):
        raise Unreadable("a matrix without an inverse")
    if size == 1:
        return Matrix(((over(number(1), total),),), "")

    def entry(row: int, column: int) -> Tree:
        minor = determinant(_without(item.rows, column, row))
        return _over(_multiplied(number(-1 if (row + column) % 2 else 1), minor), total)

    return Matrix(tuple(tuple(entry(i, j) for j in range(size)) for i in range(size)), "")


def _over(above: Tree, below: Tree) -> Tree:
    if above[0] == below[0] == "num":
        return _counted(Fraction(above[1], above[2]) / Fraction(below[1], below[2]))
    return over(above, below)


def _without(rows: Rows, row: int, column: int) -> Rows:
    return tuple(tuple(x for j, x in enumerate(line) if j != column) for i, line in enumerate(rows) if i != row)


def _added(trees: Sequence[Tree]) -> Tree:
    if all(tree[0] == "num" for tree in trees):
        return _counted(sum((Fraction(tree[1], tree[2]) for tree in trees), Fraction(0)))
    return trees[0] if len(trees) == 1 else ("add", *trees)


def _multiplied(a: Tree, b: Tree) -> Tree:
    if a[0] == b[0] == "num":
        return _counted(Fraction(a[1], a[2]) * Fraction(b[1], b[2]))
    return times(a, b)


def _counted(value: Fraction) -> Tree:
    bits = bits_of((value,))
    count(cost(bits))
    if bits > LONGEST:
        raise Unreadable("a number that is too long")
    return number(value)
