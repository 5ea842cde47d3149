"""Parse functions in pieces: expressions with the condition under which each holds, in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .kinds import Answer, Named, Ordered, Several, Span, Value, Words
from .layout import cut
from .spans import Piece, complement
from .text import Token, Unreadable, spelling

Read = Callable[[Sequence[Token]], Answer]
PIECE = "if"
"""The brackets of an `Ordered` that is an expression and its condition."""
_BEFORE = frozenset(("if", "for", "when", "whenever", "where", "provided", "that", "all"))
_REST = frozenset(("otherwise", "else", "elsewhere"))
_RELATIONS = frozenset(("<", ">", "le", "ge", "ne", "in"))
_OPERATORS = frozenset(("=", "+", "-", "*", "/", "approx", *_RELATIONS))


def piecewise(rows: Sequence[Sequence[Token]], read: Read) -> Several | None:
    """The pieces of a function, each as an expression and a condition; None for other rows. Raises Unreadable."""
    split = [_split(row) for row in rows]
    whole = [pair for pair in split if pair]
    if len(whole) < max(2, len(split)) or not any(_worded(expression, condition) for expression, condition in whole):
        return None
    conditions = _completed([_condition(condition, read) for _, condition in whole])
    return Several(
        tuple(Ordered((read(expression), condition), PIECE) for (expression, _), condition in zip(whole, conditions, strict=True))
    )


def _split(row: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token]] | None:
    """The expression and the condition of a row: parted by &, else by the first word such as "if"."""
    parts = [part for part in cut(row, ("&",))[0] if part]
    if len(parts) == 1:
        first = next((i for i, token in enumerate(row) if _opens(token)), 0)
        parts = [row[:first], row[first:]] if first else []
    # in a system of equations, aligned as x &= 1, the second part goes on with the first
    if len(parts) != 2 or (parts[1][0].text in _OPERATORS and parts[1][0].text != "-"):
        return None
    return parts[0], parts[1]


def _opens(token: Token) -> bool:
    return token.kind == "word" and token.text.lower() in _BEFORE | _REST


def _worded(expression: Sequence[Token], condition: Sequence[Token]) -> bool:
    """Whether a row says that it is a piece: 2x & -3y < 5 is an inequality."""
    bounds = condition[0].text != "-" and any(token.text in _RELATIONS for token in condition)
    return expression[-1].text == "," or bounds or any(token.kind == "word" for token in condition)


def _condition(tokens: Sequence[Token], read: Read) -> Answer:
    while tokens and (tokens[0].text.lower() in _BEFORE or tokens[0].text == ","):
        tokens = tokens[1:]
    while tokens and tokens[-1].text in (",", ".", ";"):
        tokens = tokens[:-1]
    # within \text{if x > 0} the x is a symbol
    tokens = [token._replace(kind="name") if token.kind == "word" and len(token.text) == 1 else token for token in tokens]
    if len(tokens) == 1 and tokens[0].text.lower() in _REST:
        return Words("otherwise")
    if not tokens:
        raise Unreadable("a condition is missing")
    try:
        found = read(tokens)
    except Unreadable:
        found = Words("")
    if isinstance(found, Named) and found.kind == "symbol" and isinstance(found.answer, Value) and found.answer.tree[0] == "num":
        at = found.answer.tree
        return Span((Piece(at, at, True, True),), found.name)
    # n is even
    words = [(token, token.text.lower() if token.kind == "word" else "") for token in tokens]
    plain = [token._replace(text=word) if word else token for token, word in words if word not in ("is", "an")]
    return Words(spelling(plain)) if isinstance(found, Value | Words) else found


def _completed(conditions: list[Answer]) -> list[Answer]:
    """The conditions with "otherwise" as the rest of the real numbers, if the others are sets of these."""
    spans = [condition for condition in conditions if isinstance(condition, Span)]
    rest = Words("otherwise")
    if conditions.count(rest) != 1 or len(spans) != len(conditions) - 1 or len({span.variable for span in spans}) != 1:
        return conditions
    pieces = complement([piece for span in spans for piece in span.pieces])
    return (
        [Span(pieces, spans[0].variable) if condition == rest else condition for condition in conditions] if pieces else conditions
    )
