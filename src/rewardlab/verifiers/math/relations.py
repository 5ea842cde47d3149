"""Parse equations, inequalities and membership, including names of answers as in x = 5."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from .exact import equal
from .expressions import scalar
from .inequalities import inequality, unequal
from .kinds import Answer, Finite, Matrix, Named, Ordered, Ratio, Relation, Several, Span, Value
from .layout import cut
from .polynomials import count
from .spans import Piece, approximate, intersection, union
from .text import Token, Unreadable, spelling
from .trees import Tree, names

Read = Callable[[Sequence[Token]], Answer]
_SIGNS = ("=", "<", ">", "le", "ge", "ne", "in", "approx")
_ASKS = r"(?:find|compute|evaluate|determine|calculate|simplify|value of|what is|what's)"
_AROUND = re.compile(r"\\left|\\right|\\[,;!:()\[\]]|\\displaystyle|[{}]")
_PIECES = re.compile(r"\\[A-Za-z]+|[^\s$]")
_FLIPPED = {">": "<", "ge": "le"}
_FUNCTIONS = frozenset("fghpqruvwFGHPQRTVEDL")
_SHAPES = frozenset(("angle", "overline", "triangle", "measuredangle", "widehat"))


def relation(tokens: Sequence[Token], read: Read) -> Answer | None:
    """The relation that the tokens state; None if they have no relation sign outside brackets. Raises Unreadable."""
    # relations within relations are read several times
    count(5 * len(tokens))
    parts, signs = cut(tokens, _SIGNS)
    if not signs:
        return None
    if "approx" in signs:
        # "x = 1/3 \approx 0.33": the exact value counts, not the approximation after it
        place = signs.index("approx")
        if not parts[0] and len(parts) == 2:
            return read(parts[1])
        if _disagree(parts[place], parts[place + 1]):
            raise Unreadable("an approximation of another value")
        exact_part = tokens[: sum(len(part) + 1 for part in parts[: place + 1]) - 1]
        return read(exact_part) if label(parts[0]) is None or place else read([*parts[0], Token("sign", "="), *parts[1]])
    if set(signs) == {"="}:
        return _equation(parts, read)
    if signs == ["in"]:
        return _member(parts, read)
    if signs == ["ne"]:
        return unequal(*(_tree(part, read) for part in parts))
    if len(signs) <= 2 and all(sign in (">", "ge") for sign in signs):
        parts, signs = parts[::-1], [_FLIPPED[sign] for sign in reversed(signs)]
    if len(signs) <= 2 and all(sign in ("<", "le") for sign in signs):
        # 0 < f(x) < 1 bounds the values of f; it is not solved for x
        kinds = [label(part) for part in parts]
        functions = [kind[0] if kind and kind[1] == "function" else "" for kind in kinds]
        return inequality([_tree(part, read) for part in parts], signs, functions)
    raise Unreadable("the relations do not form an equation or an interval")


def _disagree(exact: Sequence[Token], rounded: Sequence[Token]) -> bool:
    """Whether a plain number is neither the value before it rounded or cut off, nor within a fiftieth of it."""
    if len(rounded) != 1 or rounded[0].kind != "number" or label(exact) is not None:
        return False
    try:
        tree, after = scalar(exact)
    except Unreadable:
        return False
    value, number = approximate(tree), float(Fraction(rounded[0].text))
    if after or value is None:
        return False
    place = 10.0 ** -len(rounded[0].text.partition(".")[2])
    return not (abs(value - number) <= place * 0.501 or 0 <= value - number < place or abs(value - number) <= abs(value) / 50)


def value_asked(form: str, prompt: str) -> str:
    """Of an equation "x + y = 5" the right side, if the left one is what the question asks to find; else the form."""
    left, sign, right = form.partition("=")
    parts = _PIECES.findall(_AROUND.sub(" ", left))
    if not sign or "=" in right or not 2 <= len(parts) <= 40 or not right.strip(" $.") or left[-1:] in "<>!\\":
        return form
    # most equations are about something else, and that takes less time to find out than a pattern
    if not all(part in prompt for part in parts):
        return form
    spelled = r"[\s{}$]{0,4}".join(map(re.escape, parts))
    # it must be all that is asked, and asked last: "find x + y", and not "find (x + y)^2" or "find x + y modulo 5"
    asked = re.compile(
        rf"(?i:{_ASKS})[\s$\\({{]{{0,6}}{spelled}[\s{{}}$\\)]{{0,6}}(?:[.?!]?\s{{0,9}}$|[.?!]\s|,?\s?(?:if|given|where|when)\s)"
    )
    question = _AROUND.sub(" ", prompt[-3000:])
    found = list(asked.finditer(question))
    return right if found and not re.search(_ASKS, question[found[-1].end() :], re.IGNORECASE) else form


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
    if tokens[0].kind == "name" and texts[-1] == ")" and "(" in texts:
        inner = texts[texts.index("(") + 1 : -1]
        # t(5) may be a product, but t(g(5)) is none
        named = texts[0][0] in _FUNCTIONS or (texts[1] == "(" and len(inner) > 3 and inner[0] in _FUNCTIONS and inner[1] == "(")
        if named and inner and not {"+", "-", "*", "/", "^", "="} & set(inner) and _whole("".join(inner)):
            return "".join(texts), "function"
    return _symbol(tokens)


def _whole(inner: str) -> bool:
    """Whether each bracket that opens within closes within: f(g(2)), but not f(2)g(3)."""
    depth = 0
    for sign in inner:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0


def _symbol(tokens: Sequence[Token]) -> tuple[str, str] | None:
    try:
        tree, after = scalar(tokens)
    except Unreadable:
        return None
    return (tree[1], "symbol") if tree[0] == "sym" and not after else None


def _tree(tokens: Sequence[Token], read: Read) -> Tree:
    if any(token.text.startswith("begin{") for token in tokens) and isinstance(found := read(tokens), Value):
        return found.tree
    tree, after = scalar(tokens)
    if after:
        raise Unreadable(f"{spelling(list(after))[:40]!r} follows an expression")
    return tree


def _equation(parts: Sequence[Sequence[Token]], read: Read) -> Answer:
    labels = [label(part) for part in parts]
    last = read(parts[-1]) if len(parts) > 2 or labels[0] or _has_matrix(parts[-1]) else None
    if isinstance(last, Matrix):
        return _matrices(parts, last, read)
    if last is not None and len(parts) == 2 and not labels[0] and isinstance(last, Value):
        return _sides(_tree(parts[0], read), last.tree)
    if len(parts) == 2:
        if labels[0] and last is not None:
            return Named(*labels[0], last)
        if ratio := _ratio_names(parts[0]):
            found = read(parts[1])
            return Named(ratio, "ratio", found._replace(clock=False) if isinstance(found, Ratio) else found)
        if labels[1] and labels[1][1] == "symbol":
            return Named(*labels[1], read(parts[0]))
        return _sides(_tree(parts[0], read), _tree(parts[1], read))
    assert last is not None
    if all(labels[:-1]):
        # x = y = 5 states both x = 5 and y = 5
        return Several(tuple(Named(*name, last) for name in labels[:-1] if name))
    sides = [_tree(part, read) for part in (parts[1:-1] if labels[0] else parts[:-1])]
    # 2 + 3 = 5 = 6: a chain counts only if no step is disproved
    if not isinstance(last, Value) or any(equal(side, last.tree) is False for side in sides):
        raise Unreadable("the sides of an equation are not equal")
    return Named(*labels[0], last) if labels[0] else last


def _sides(left: Tree, right: Tree) -> Answer:
    return _worked_out([left], right) or Relation("=", left, right)


def _has_matrix(tokens: Sequence[Token]) -> bool:
    return any(token.text.startswith("begin{") for token in tokens)


def _matrices(parts: Sequence[Sequence[Token]], last: Matrix, read: Read) -> Answer:
    """A + B = M and AB = M_1 M_2 = M state M, whatever stands for it on the left. A step that does not come to M is a mistake."""
    for part in parts[:-1]:
        if not _has_matrix(part):
            continue
        side = read(part)
        if not isinstance(side, Matrix) or [len(row) for row in side.rows] != [len(row) for row in last.rows]:
            raise Unreadable("the sides of an equation are not equal")
        pairs = [(a, b) for row, other in zip(side.rows, last.rows, strict=True) for a, b in zip(row, other, strict=True)]
        if any(equal(a, b) is not True for a, b in pairs):
            raise Unreadable("the sides of an equation are not equal")
    names = [part for part in parts[:-1] if not _has_matrix(part)]
    if len(names) > 1 or any(_multiple(part) for part in names):
        raise Unreadable("an equation of matrices that is not understood")
    if not names:
        return last
    known = label(names[0])
    return Named(*known, last) if known else Named(spelling(list(names[0])), "function", last)


def _multiple(tokens: Sequence[Token]) -> bool:
    """2A = M does not state what A is, while 2A - B = M states what was asked for."""
    numbers = [i for i, token in enumerate(tokens) if token.kind == "number" and (i == 0 or tokens[i - 1].text not in "^_{")]
    return bool(numbers) and not any(token.text in ("+", "-") for token in tokens[1:])


def _ratio_names(tokens: Sequence[Token]) -> str:
    """The names of a ratio, as in S_1:S_2 = 7:32; "" for other tokens."""
    parts, _ = cut(tokens, (":",))
    names = [label(part) for part in parts]
    known = [name[0] for name in names if name and name[1] in ("symbol", "shape", "function")]
    return ":".join(known) if len(parts) > 1 and len(known) == len(parts) else ""


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
