"""Parse equations, inequalities and membership, including names of answers as in x = 5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from .exact import equal, linear
from .expressions import scalar
from .kinds import Answer, Finite, Named, Ordered, Relation, Several, Span, Value
from .layout import cut
from .spans import BELOW_ALL, Piece, intersection, union, without
from .text import Token, Unreadable, spelling
from .trees import INFINITE, Tree, names, number

Read = Callable[[Sequence[Token]], Answer]
_SIGNS = ("=", "<", ">", "le", "ge", "ne", "in", "approx")
_FLIPPED = {">": "<", "ge": "le"}
_WRITTEN = {"<": "<", "le": "<=", "=": "=", "ne": "!="}
_FUNCTIONS = frozenset("fghpqruvwFGHPQRTVEDL")
_SHAPES = frozenset(("angle", "overline", "triangle", "measuredangle", "widehat"))


def relation(tokens: Sequence[Token], read: Read) -> Answer | None:
    """The relation that the tokens state; None if they have no relation sign outside brackets. Raises Unreadable."""
    parts, signs = cut(tokens, _SIGNS)
    if not signs:
        return None
    if "approx" in signs:
        # "x = 1/3 \approx 0.33": the exact value counts, not the approximation after it
        place = signs.index("approx")
        exact_part = tokens[: sum(len(part) + 1 for part in parts[: place + 1]) - 1]
        return read(exact_part) if label(parts[0]) is None or place else read([*parts[0], Token("sign", "="), *parts[1]])
    if set(signs) == {"="}:
        return _equation(parts, read)
    if signs == ["in"]:
        return _member(parts, read)
    if signs == ["ne"]:
        return _unequal(*(_tree(part) for part in parts))
    if len(signs) <= 2 and all(sign in ("<", "le") for sign in signs):
        return _inequality([_tree(part) for part in parts], signs)
    if len(signs) <= 2 and all(sign in (">", "ge") for sign in signs):
        return _inequality([_tree(part) for part in reversed(parts)], [_FLIPPED[sign] for sign in reversed(signs)])
    raise Unreadable("the relations do not form an equation or an interval")


def label(tokens: Sequence[Token]) -> tuple[str, str] | None:
    """The name that the tokens form, and its kind: symbol, function, word or shape; None if they are an expression."""
    if not tokens or len(tokens) > 14:
        return None
    texts = [token.text for token in tokens]
    if any(token.kind == "word" for token in tokens):
        plain = all(token.kind in ("word", "name") or token.text in ("(", ")", "'", "*") for token in tokens)
        return (" ".join(texts).lower(), "word") if plain else None
    if (texts[0], texts[-1]) == ("(", ")") and len(texts) > 3 and all(t.kind == "name" or t.text == "," for t in tokens[1:-1]):
        return "".join(texts), "function"
    if texts[0] in _SHAPES and all(token.kind == "name" or token.text in {*_SHAPES, "{", "}"} for token in tokens):
        return "".join(texts), "shape"
    if (texts[0], texts[-1]) == ("|", "|") and len(texts) == 3 and texts[1].isupper():
        return texts[1], "shape"
    if texts[:3] in (["frac", "{", "d"], ["frac", "{", "\\partial"]) and texts[-1] == "}":
        return "".join(texts), "function"
    if tokens[0].kind == "name" and texts[0][0] in _FUNCTIONS and texts[-1] == ")" and "(" in texts:
        inner = texts[texts.index("(") + 1 : -1]
        if inner and not {"+", "-", "*", "/", "^", "(", "="} & set(inner):
            return "".join(texts), "function"
    return _symbol(tokens)


def _symbol(tokens: Sequence[Token]) -> tuple[str, str] | None:
    try:
        tree, after = scalar(tokens)
    except Unreadable:
        return None
    return (tree[1], "symbol") if tree[0] == "sym" and not after else None


def _tree(tokens: Sequence[Token]) -> Tree:
    tree, after = scalar(tokens)
    if after:
        raise Unreadable(f"{spelling(list(after))[:40]!r} follows an expression")
    return tree


def _equation(parts: Sequence[Sequence[Token]], read: Read) -> Answer:
    labels = [label(part) for part in parts]
    if len(parts) == 2:
        if labels[0]:
            return Named(*labels[0], read(parts[1]))
        if labels[1] and labels[1][1] == "symbol":
            return Named(*labels[1], read(parts[0]))
        left, right = _tree(parts[0]), _tree(parts[1])
        return _worked_out([left], right) or Relation("=", left, right)
    if all(labels[:-1]):
        last = read(parts[-1])
        # x = y = 5 states both x = 5 and y = 5
        return Several(tuple(Named(*name, last) for name in labels[:-1] if name))
    last = read(parts[-1])
    sides = [_tree(part) for part in (parts[1:-1] if labels[0] else parts[:-1])]
    # 2 + 3 = 5 = 6: a chain counts only if no step is disproved
    if not isinstance(last, Value) or any(equal(side, last.tree) is False for side in sides):
        raise Unreadable("the sides of an equation are not equal")
    return Named(*labels[0], last) if labels[0] else last


def _worked_out(sides: Sequence[Tree], last: Tree) -> Value | None:
    """The value of an equation without symbols: "2 + 3 = 5" states 5, and "2 + 3 = 6" is Unreadable."""
    if any(names(tree) for tree in (*sides, last)):
        return None
    if any(equal(side, last) is False for side in sides):
        raise Unreadable("the sides of an equation are not equal")
    return Value(last)


def _member(parts: Sequence[Sequence[Token]], read: Read) -> Answer:
    name, members = label(parts[0]), read(parts[1])
    if name is None:
        raise Unreadable("the member of the set has no name")
    if isinstance(members, Finite):
        return Named(*name, members)
    if isinstance(members, Ordered) and len(members.items) == 2:
        low, high = members.items
        if isinstance(low, Value) and isinstance(high, Value):
            closed = members.brackets[0] == "[", members.brackets[1] == "]"
            return Span((Piece(low.tree, high.tree, *closed),), name[0])
    if isinstance(members, Span):
        return Span(members.pieces, name[0])
    raise Unreadable("the right side of \\in is not a set")


def _unequal(left: Tree, right: Tree) -> Answer:
    for variable, excluded in ((left, right), (right, left)):
        if variable[0] == "sym" and not names(excluded):
            pieces = without((Piece(BELOW_ALL, INFINITE, False, False),), [excluded])
            if pieces is not None:
                return Span(pieces, variable[1])
    return Relation("!=", left, right)


def _inequality(sides: list[Tree], signs: Sequence[str]) -> Answer:
    """a < x < b, or a < b; the smallest side comes first."""
    if len(sides) == 3:
        low, middle, high = sides
        if middle[0] == "sym" and not names(low) | names(high):
            return Span((Piece(low, high, signs[0] == "le", signs[1] == "le"),), middle[1])
        return Several((Relation(_WRITTEN[signs[0]], low, middle), Relation(_WRITTEN[signs[1]], middle, high)))
    (left, right), closed = sides, signs[0] == "le"
    if left[0] == "sym" and not names(right):
        return Span((Piece(BELOW_ALL, right, False, closed),), left[1])
    if right[0] == "sym" and not names(left):
        return Span((Piece(left, INFINITE, closed, False),), right[1])
    # 2x + 1 < 5 is the interval x < 2
    if solved := linear(left, right):
        name, bound, rising = solved
        at = number(Fraction(bound))
        piece = Piece(BELOW_ALL, at, False, closed) if rising else Piece(at, INFINITE, closed, False)
        return Span((piece,), name)
    return Relation(_WRITTEN[signs[0]], left, right)


def together(items: list[Answer], between: Sequence[str]) -> Answer | None:
    """Joined conditions on one variable, such as "x < 1 or x > 5" and "x > 1 and x < 5"; None for any other items."""
    spans = [item for item in items if isinstance(item, Span)]
    if len(spans) < len(items) or len({item.variable for item in spans}) > 1 or len(set(between)) > 1 or between[0] in (",", ";"):
        return None
    if between[0] == "or":
        return Span(union([piece for item in spans for piece in item.pieces]), spans[0].variable)
    pieces = spans[0].pieces
    for item in spans[1:]:
        common = intersection(pieces, item.pieces)
        if common is None:
            return None
        pieces = common
    return Span(pieces, spans[0].variable)
