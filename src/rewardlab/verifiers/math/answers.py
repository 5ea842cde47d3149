"""Parse tokens into answers: values, several answers, tuples, sets, intervals, matrices, equations, words."""

from __future__ import annotations

from collections.abc import Sequence

from . import relations
from .kinds import Answer, Based, Finite, Named, Ordered, Ratio, Several, Span, Value, Words
from .layout import closing, cut, rows_of
from .letters import NO_SOLUTION
from .matrices import ENVIRONMENTS, matrix
from .piecewise import piecewise
from .spans import EVERYTHING, Piece, intersection, point, union, without
from .text import Token, Unreadable
from .values import value

MOST = 100
"""Most answers in a list."""
_OPEN = {"(": ")", "[": "]", "\\{": "\\}", "langle": "rangle"}
_PREFACE = ("the", "final", "answer", "result", "value", "total", "is")
_LISTED = ("=", "or", "and", "pm", *(f"begin{{{name}}}" for name in ENVIRONMENTS))
"""Tokens that make the content of brackets a whole answer rather than a factor of an expression."""
_ALL_REALS = frozenset(f"{every} {real}" for every in ("all", "any", "every") for real in ("real numbers", "reals", "real number"))
_SETS = ("cup", "cap", "setminus")


def answer(tokens: Sequence[Token]) -> Answer:
    """The answer that the tokens state. Raises Unreadable."""
    tokens = _bare(tokens)
    if not tokens:
        raise Unreadable("there is no answer")
    if any(token.text in ("pm", "mp") and token.kind == "command" for token in tokens):
        # "1 \pm 2" is parsed twice, once with each sign; \mp takes the opposite one
        return several(flat([answer(_with_sign(tokens, sign)) for sign in "+-"]))
    if rows := rows_of(tokens, ("cases", "aligned", "align", "gathered")):
        return piecewise(rows, answer) or several([answer([t for t in row if t.text != "&"]) for row in rows])
    parts, between = cut(tokens, (",", ";", "and", "or"))
    if len(parts) == 1:
        return single(parts[0])
    if len(parts) > MOST:
        raise Unreadable(f"{len(parts)} answers")
    if "or" in between and "," in between and (groups := _groups(tokens)):
        return several([several([single(part) for part in group]) for group in groups])
    items = _in_groups([single(part) for part in parts if part])
    if not items:
        raise Unreadable("there is no answer")
    if isinstance(items[-1], Words) and items[-1].text.startswith("then "):
        return Ordered((*items[:-1], Words(items[-1].text.removeprefix("then "))), "then")
    return relations.together(items, between) or _joined(several(_same_name(items)), between)


def _joined(listed: Answer, between: Sequence[str]) -> Answer:
    word = next((word for word in ("or", "and") if word in between), "")
    return listed._replace(joined=word) if word and isinstance(listed, Several) else listed


def several(items: list[Answer]) -> Answer:
    if not items:
        raise Unreadable("there is no answer")
    if len({isinstance(item, Words) for item in items}) > 1:
        raise Unreadable("the list mixes words with values")
    return items[0] if len(items) == 1 else Several(tuple(items))


def flat(items: list[Answer]) -> list[Answer]:
    return [part for item in items for part in (item.items if isinstance(item, Several) else (item,))]


def _bare(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without surrounding braces and trailing punctuation."""
    while tokens and (tokens[-1].text in (".", ",", ";", "\\\\") and tokens[-1].kind == "sign"):
        tokens = tokens[:-1]
    while len(tokens) > 1 and tokens[0].text == "{" and closing(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _stated(tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens without a leading "the answer is"."""
    i = 0
    while i < len(tokens) - 1 and tokens[i].kind == "word" and tokens[i].text.lower() in _PREFACE:
        i += 1
    return tokens[i:] if i and tokens[i - 1].text.lower() == "is" else tokens


def _with_sign(tokens: Sequence[Token], sign: str) -> list[Token]:
    other = {"+": "-", "-": "+"}[sign]
    signs = {"pm": sign, "mp": other}
    return [Token("sign", signs[t.text]) if t.kind == "command" and t.text in signs else t for t in tokens]


def _groups(tokens: Sequence[Token]) -> list[list[Sequence[Token]]] | None:
    """Split "x=1, y=2 or x=3, y=4" into two answers of two parts each; None unless all have the same number of parts."""
    groups = [cut(part, (",", ";", "and"))[0] for part in cut(tokens, ("or",))[0]]
    sizes = {len(group) for group in groups}
    return groups if len(groups) > 1 and len(sizes) == 1 and sizes.pop() > 1 and all(part for g in groups for part in g) else None


def _in_groups(items: list[Answer]) -> list[Answer]:
    """In "x=1, y=2; x=3, y=4" the same names come again: there are two answers of two parts each."""
    names = [item.name if isinstance(item, Named) else "" for item in items]
    size = names.index(names[0], 1) if names and names[0] and names[0] in names[1:] else 0
    if size < 2 or len(names) % size or names != names[:size] * (len(names) // size):
        return items
    return [several(items[i : i + size]) for i in range(0, len(items), size)]


def _same_name(items: list[Answer]) -> list[Answer]:
    """In "x = 1, 2" the name applies to both values."""
    first = items[0]
    if isinstance(first, Named) and len(items) > 1 and all(isinstance(item, Value) for item in items[1:]):
        return [first, *(Named(first.name, first.kind, item) for item in items[1:])]
    return items


# ---- one answer ------------------------------------------------------------------------------------------------------


def single(tokens: Sequence[Token]) -> Answer:
    tokens = _stated(_bare(tokens))
    if not tokens:
        raise Unreadable("there is no answer")
    # relations first: their sides may be sets, matrices or brackets themselves
    if (read_as := relations.relation(tokens, answer)) is not None:
        return read_as
    if any(token.text in _SETS and token.kind == "command" for token in tokens):
        return region(tokens)
    if (read_as := matrix(tokens)) is not None:
        return read_as
    if (read_as := bracketed(tokens)) is not None:
        return read_as
    if (read_as := special(tokens)) is not None:
        return read_as
    if len(tokens[0].text) == 1 and tokens[0].text.isupper() and len(tokens) > 1 and tokens[1].text == "(":
        # P(2,3) is a point with its name
        point_at = bracketed(tokens[1:])
        if isinstance(point_at, Ordered) and point_at.brackets == "()":
            return Named(tokens[0].text, "symbol", point_at)
    parts, _ = cut(tokens, (":",))
    if len(parts) > 1:
        # two digits after the colon may be minutes, which do not cancel: 12:30 is not 6:15
        minutes = parts[1][0].text if len(parts) == 2 and parts[1] else ""
        clock = len(minutes) == 2 and minutes < "60"
        values = [value(part) for part in parts]
        return Ratio(tuple(part.tree for part in values), clock, values[-1].unit.replace(" ", ""))
    return value(tokens)


def special(tokens: Sequence[Token]) -> Answer | None:
    first = tokens[0]
    if len(tokens) == 1 and first.text == "emptyset":
        return Span(())
    if first.text.startswith("field "):
        if len(tokens) > 1:
            raise Unreadable("more tokens follow the name of a set of numbers")
        return Span((EVERYTHING,)) if first.text == "field R" else Words(first.text)
    if first.kind == "number" and len(tokens) > 2 and tokens[1].text == "_" and first.text.isdigit():
        base = [token.text for token in tokens[2:] if token.text not in "{}"]
        if len(base) == 1 and base[0].isdigit() and all(token.text in "{}" or token.text == base[0] for token in tokens[2:]):
            return Based(first.text.lstrip("0"), base[0])
    if all(token.kind in ("word", "sign") and token.text not in ("+", "=", "/", "%", "|") for token in tokens):
        return words(tokens)
    return None


def words(tokens: Sequence[Token]) -> Words | Span:
    text = " ".join(token.text.lower() for token in tokens if token.kind == "word")
    if not text:
        raise Unreadable("no words")
    return Span((EVERYTHING,)) if text in _ALL_REALS else Words(text)


# ---- brackets --------------------------------------------------------------------------------------------------------


def bracketed(tokens: Sequence[Token]) -> Answer | None:
    """A tuple, an interval or a set, if one pair of brackets surrounds all tokens; else None."""
    first, last = tokens[0].text, tokens[-1].text
    if first not in _OPEN or closing(tokens, 0) != len(tokens) - 1 or last not in (")", "]", "\\}", "rangle"):
        return None
    content = tokens[1:-1]
    if first == "\\{":
        return _set(content) if last == "\\}" else None
    parts, _ = cut(content, (",", ";"))
    brackets = "()" if first == "langle" else first + last
    if len(parts) == 1:
        if first == "langle":
            return Ordered((answer(content),), brackets)
        return answer(content) if first == "(" and any(token.text in _LISTED for token in content) else None
    if not all(parts):
        raise Unreadable("a tuple has an empty place")
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


def region(tokens: Sequence[Token]) -> Span:
    """Unions, intersections and differences of sets, evaluated from left to right."""
    parts, between = cut(tokens, _SETS)
    if not between:
        raise Unreadable("a union of sets stands within an expression")
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
                raise Unreadable("only single points can be taken out of a set")
            pieces = without(pieces, [low for low, _ in ends])
    if pieces is None:
        raise Unreadable("the bounds of the intervals cannot be ordered")
    return Span(pieces)


def pieces_of(parsed: Answer) -> tuple[Piece, ...]:
    """An answer as a set of real numbers. Raises Unreadable."""
    if isinstance(parsed, Span):
        return parsed.pieces
    if isinstance(parsed, Words) and parsed.text in NO_SOLUTION:
        return ()
    if isinstance(parsed, Finite) and all(isinstance(item, Value) for item in parsed.items):
        return tuple(point(item.tree) for item in parsed.items if isinstance(item, Value))
    if isinstance(parsed, Ordered) and len(parsed.items) == 2 and parsed.brackets in ("()", "[]", "(]", "[)"):
        low, high = parsed.items
        if isinstance(low, Value) and isinstance(high, Value):
            return (Piece(low.tree, high.tree, parsed.brackets[0] == "[", parsed.brackets[1] == "]"),)
    raise Unreadable("not a set of numbers")
