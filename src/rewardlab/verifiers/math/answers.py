"""Parse tokens into answers: values, several answers, tuples, sets, intervals, matrices, equations, words."""

from __future__ import annotations

from collections.abc import Sequence

from . import relations, units
from .expressions import scalar
from .kinds import Answer, Based, Finite, Matrix, Named, Ordered, Ratio, Several, Span, Value, Words
from .layout import closing, cut, inside, rows_of
from .spans import EVERYTHING, Piece, intersection, point, union, without
from .text import Token, Unreadable, spelling
from .trees import number, over, times

MOST = 100
"""Most answers in a list."""
_OPEN = {"(": ")", "[": "]", "\\{": "\\}", "langle": "rangle"}
_PREFACE = ("the", "final", "answer", "result", "value", "total", "is")
_MATRICES = ("pmatrix", "bmatrix", "vmatrix", "matrix", "array", "Bmatrix", "Vmatrix", "smallmatrix")
_LISTED = ("=", "or", "and", "pm", *(f"begin{{{name}}}" for name in _MATRICES))
"""Tokens that make the content of brackets a whole answer rather than a factor of an expression."""
_SETS = ("cup", "cap", "setminus")


def answer(found: Sequence[Token]) -> Answer:
    """The answer that the tokens state. Raises Unreadable."""
    found = _bare(found)
    if not found:
        raise Unreadable("nothing is said")
    if any(token.text in ("pm", "mp") and token.kind == "command" for token in found):
        return several(flat([answer(_with_sign(found, sign)) for sign in "+-"]))
    if rows := rows_of(found, ("cases", "aligned", "align", "gathered")):
        return several([answer([t for t in row if t.text != "&"]) for row in rows])
    parts, between = cut(found, (",", ";", "and", "or"))
    if len(parts) == 1:
        return single(parts[0])
    if len(parts) > MOST:
        raise Unreadable(f"{len(parts)} answers")
    if "or" in between and "," in between and (groups := _groups(found)):
        return several([several([single(part) for part in group]) for group in groups])
    items = [single(part) for part in parts if part]
    if not items:
        raise Unreadable("nothing is said")
    return relations.together(items, between) or several(_same_name(items))


def several(items: list[Answer]) -> Answer:
    if not items:
        raise Unreadable("nothing is said")
    if len({isinstance(item, Words) for item in items}) > 1:
        raise Unreadable("words beside values")
    return items[0] if len(items) == 1 else Several(tuple(items))


def flat(items: list[Answer]) -> list[Answer]:
    return [one for item in items for one in (item.items if isinstance(item, Several) else (item,))]


def _bare(found: Sequence[Token]) -> Sequence[Token]:
    """The tokens without surrounding braces and trailing punctuation."""
    while found and (found[-1].text in (".", ",", ";", "\\\\") and found[-1].kind == "sign"):
        found = found[:-1]
    while len(found) > 1 and found[0].text == "{" and closing(found, 0) == len(found) - 1:
        found = found[1:-1]
    return found


def _stated(found: Sequence[Token]) -> Sequence[Token]:
    """The tokens without a leading "the answer is"."""
    i = 0
    while i < len(found) - 1 and found[i].kind == "word" and found[i].text.lower() in _PREFACE:
        i += 1
    return found[i:] if i and found[i - 1].text.lower() == "is" else found


def _with_sign(found: Sequence[Token], sign: str) -> list[Token]:
    other = {"+": "-", "-": "+"}[sign]
    signs = {"pm": sign, "mp": other}
    return [Token("sign", signs[t.text]) if t.kind == "command" and t.text in signs else t for t in found]


def _groups(found: Sequence[Token]) -> list[list[Sequence[Token]]] | None:
    """Split "x=1, y=2 or x=3, y=4" into two answers of two parts each; None unless all have the same number of parts."""
    groups = [cut(part, (",", ";", "and"))[0] for part in cut(found, ("or",))[0]]
    sizes = {len(group) for group in groups}
    return groups if len(groups) > 1 and len(sizes) == 1 and sizes.pop() > 1 and all(part for g in groups for part in g) else None


def _same_name(items: list[Answer]) -> list[Answer]:
    """In "x = 1, 2" the name applies to both values."""
    first = items[0]
    if isinstance(first, Named) and len(items) > 1 and all(isinstance(item, Value) for item in items[1:]):
        return [first, *(Named(first.name, first.kind, item) for item in items[1:])]
    return items


# ---- one answer ------------------------------------------------------------------------------------------------------


def single(found: Sequence[Token]) -> Answer:
    found = _stated(_bare(found))
    if not found:
        raise Unreadable("nothing is said")
    if (read_as := relations.relation(found, answer)) is not None:
        return read_as
    if any(token.text in _SETS and token.kind == "command" for token in found):
        return region(found)
    if (read_as := matrix(found)) is not None:
        return read_as
    if (read_as := bracketed(found)) is not None:
        return read_as
    if (read_as := special(found)) is not None:
        return read_as
    parts, _ = cut(found, (":",))
    if len(parts) > 1:
        clock = len(parts) == 2 and len(parts[1]) > 0 and len(parts[1][0].text) == 2
        values = [value(part) for part in parts]
        return Ratio(tuple(part.tree for part in values), clock, values[-1].unit.replace(" ", ""))
    return value(found)


def special(found: Sequence[Token]) -> Answer | None:
    first = found[0]
    if len(found) == 1 and first.text == "emptyset":
        return Span(())
    if first.text.startswith("field "):
        if len(found) > 1:
            raise Unreadable("a set of numbers")
        return Span((EVERYTHING,)) if first.text == "field R" else Words(first.text)
    if first.kind == "number" and len(found) > 2 and found[1].text == "_" and first.text.isdigit():
        base = [token.text for token in found[2:] if token.text not in "{}"]
        if len(base) == 1 and base[0].isdigit() and all(token.text in "{}" or token.text == base[0] for token in found[2:]):
            return Based(first.text.lstrip("0"), base[0])
    if all(token.kind in ("word", "sign") and token.text not in ("+", "=", "/", "%", "|") for token in found):
        return words(found)
    return None


def words(found: Sequence[Token]) -> Words:
    said = " ".join(token.text.lower() for token in found if token.kind == "word")
    if not said:
        raise Unreadable("no words")
    return Words(said)


def value(found: Sequence[Token]) -> Value:
    """An expression with its unit or percent sign. Raises Unreadable."""
    if not found:
        raise Unreadable("nothing is said")
    found, mark = _marked(list(found))
    tree, rest = scalar(found)
    if rest and rest[0].text.lower() in units.SCALES:
        tree, rest = times(tree, number(units.SCALES[rest[0].text.lower()])), rest[1:]
    if mark == "%" or (rest and rest[0].text.lower() in ("percent", "%") and len(rest) == 1):
        return Value(over(tree, number(100)), "", True)
    name = units.unit(rest)
    if name is None:
        raise Unreadable(f"{spelling(list(rest))[:40]!r} follows a value")
    return Value(tree, mark or name)


def _marked(found: list[Token]) -> tuple[list[Token], str]:
    """The tokens without a final percent or degree sign, or a leading currency; and the mark that was removed."""
    first = 1 if found[0].text == "-" else 0
    if len(found) > first + 1 and found[first].kind == "word" and units.KNOWN.get(found[first].text.lower()) in ("$", "euro", "lb"):
        return _of_money(found, first)
    if found[-1].text == "%" and len(found) > 1:
        return found[:-1], "%"
    texts = [token.text for token in found[-4:]]
    for tail in (["^", "circ"], ["^", "{", "circ", "}"]):
        # sin 30^\circ: the degrees belong to the argument, not to the value
        plain = not any(token.text in ("sin", "cos", "tan", "cot", "sec", "csc") for token in found)
        if texts[-len(tail) :] == tail and len(found) > len(tail) and plain:
            return found[: -len(tail)], "deg"
    return found, ""


def _of_money(found: list[Token], first: int) -> tuple[list[Token], str]:
    rest = found[:first] + found[first + 1 :]
    last = rest[-1]
    if last.kind == "word" and units.KNOWN.get(last.text.lower()) == units.KNOWN[found[first].text.lower()]:
        rest = rest[:-1]
    return rest, units.KNOWN[found[first].text.lower()] if not any(token.kind == "word" for token in rest) else ""


# ---- brackets --------------------------------------------------------------------------------------------------------


def bracketed(found: Sequence[Token]) -> Answer | None:
    """A tuple, an interval or a set, if one pair of brackets surrounds all tokens; else None."""
    first, last = found[0].text, found[-1].text
    if first not in _OPEN or closing(found, 0) != len(found) - 1 or last not in (")", "]", "\\}", "rangle"):
        return None
    content = found[1:-1]
    if first == "\\{":
        return _set(content) if last == "\\}" else None
    parts, _ = cut(content, (",", ";"))
    brackets = "()" if first == "langle" else first + last
    if len(parts) == 1:
        if first == "langle":
            return Ordered((answer(content),), brackets)
        return answer(content) if first == "(" and any(token.text in _LISTED for token in content) else None
    if not all(parts):
        raise Unreadable("an empty place")
    return Ordered(tuple(single(part) for part in parts), brackets)


def _set(content: Sequence[Token]) -> Answer:
    if not content:
        return Span(())
    condition, _ = cut(content, ("|", ":"))
    if len(condition) == 2:
        return answer(condition[1])
    parts, _ = cut(content, (",", ";"))
    if len(parts) > MOST:
        raise Unreadable(f"a set of {len(parts)}")
    items = flat([answer(part) for part in parts])
    return Finite(tuple(items))


def region(found: Sequence[Token]) -> Span:
    """Unions, intersections and differences of sets, evaluated from left to right."""
    parts, between = cut(found, _SETS)
    if not between:
        raise Unreadable("a union within an expression")
    pieces: tuple[Piece, ...] | None = pieces_of(answer(parts[0]))
    for sign, part in zip(between, parts[1:], strict=True):
        other = answer(part)
        if pieces is None:
            break
        if sign == "cup":
            pieces = union((*pieces, *pieces_of(other)))
        elif sign == "cap":
            pieces = intersection(pieces, pieces_of(other))
        else:
            ends = [(piece.low, piece.high) for piece in pieces_of(other)]
            if any(low != high for low, high in ends):
                raise Unreadable("a difference of intervals")
            pieces = without(pieces, [low for low, _ in ends])
    if pieces is None:
        raise Unreadable("bounds that cannot be ordered")
    return Span(pieces)


def pieces_of(found: Answer) -> tuple[Piece, ...]:
    """An answer as a set of real numbers. Raises Unreadable."""
    if isinstance(found, Span):
        return found.pieces
    if isinstance(found, Finite) and all(isinstance(item, Value) for item in found.items):
        return tuple(point(item.tree) for item in found.items if isinstance(item, Value))
    if isinstance(found, Ordered) and len(found.items) == 2 and found.brackets in ("()", "[]", "(]", "[)"):
        low, high = found.items
        if isinstance(low, Value) and isinstance(high, Value):
            return (Piece(low.tree, high.tree, found.brackets[0] == "[", found.brackets[1] == "]"),)
    raise Unreadable("not a set of numbers")


def matrix(found: Sequence[Token]) -> Matrix | None:
    """A matrix, with or without brackets around it, or a number times one; None if there is no matrix."""
    within = found[0].text in ("(", "[") and closing(found, 0) == len(found) - 1
    if within and found[1].text.startswith("begin{"):
        found = found[1:-1]
    begins = [i for i, token in enumerate(found) if token.text in [f"begin{{{name}}}" for name in _MATRICES]]
    if not begins:
        return None
    if len(begins) > 1 or not (rows := rows_of(found[begins[0] :], _MATRICES)):
        raise Unreadable("more than a matrix")
    before = found[: begins[0]]
    entries = [[value(_bare(part)).tree for part in cut(row, ("&",))[0]] for row in rows]
    if len({len(row) for row in entries}) != 1:
        raise Unreadable("rows of different lengths")
    if before:
        factor = value(before[:-1] if before[-1].text == "*" else before).tree if spelling(list(before)) != "-" else number(-1)
        entries = [[times(factor, entry) for entry in row] for row in entries]
    style = inside(found[begins[0]].text)
    return Matrix(tuple(tuple(row) for row in entries), "|" if style == "vmatrix" else "")
