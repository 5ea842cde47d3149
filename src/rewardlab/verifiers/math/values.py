"""Parse an expression with its unit, percent sign, degrees or currency."""

from __future__ import annotations

from collections.abc import Sequence

from . import units
from .expressions import scalar
from .kinds import Value
from .text import Token, Unreadable, spelling
from .trees import number, over, times


def value(tokens: Sequence[Token]) -> Value:
    """An expression with its unit or percent sign. Raises Unreadable."""
    if not tokens:
        raise Unreadable("there is no value")
    tokens, mark = _marked(list(tokens))
    start = units.starts(tokens)
    tree, after = scalar(tokens[:start])
    after = [*after, *tokens[start:]]
    # "3 million" is a number, not 3 of a unit
    if after and after[0].text.lower() in units.SCALES:
        tree, after = times(tree, number(units.SCALES[after[0].text.lower()])), after[1:]
    if mark == "%" or _spelled(after) in units.PERCENT:
        return Value(over(tree, number(100)), "", True)
    if _spelled(after) in units.PER_MILLE:
        return Value(over(tree, number(1000)), "", True)
    name = units.unit(after)
    if name is None:
        raise Unreadable(f"{spelling(list(after))[:40]!r} follows a value")
    return Value(tree, mark or name)


def _spelled(tokens: Sequence[Token]) -> str:
    return " ".join(token.text.lower() for token in tokens if token.text != ".")


def _marked(tokens: list[Token]) -> tuple[list[Token], str]:
    """The tokens without a final percent or degree sign, or a leading currency; and the mark that was removed."""
    first = 1 if tokens[0].text == "-" else 0
    if (
        len(tokens) > first + 1
        and tokens[first].kind == "word"
        and units.KNOWN.get(tokens[first].text.lower()) in ("$", "euro", "lb")
    ):
        return _without_currency(tokens, first)
    if tokens[-1].text == "%" and len(tokens) > 1:
        return tokens[:-1], "%"
    texts = [token.text for token in tokens[-5:]]
    for tail in (["^", "circ"], ["^", "{", "circ", "}"]):
        scale = tokens[-1].text if texts[-len(tail) - 1 : -1] == tail and tokens[-1].text in ("C", "F") else ""
        if scale and len(tokens) > len(tail) + 1:
            return tokens[: -len(tail) - 1], f"deg{scale}"
        # sin 30^\circ: the degrees belong to the argument, not to the value
        plain = not any(token.text in ("sin", "cos", "tan", "cot", "sec", "csc") for token in tokens)
        if texts[-len(tail) :] == tail and len(tokens) > len(tail) and plain:
            return tokens[: -len(tail)], "deg"
    return tokens, ""


def _without_currency(tokens: list[Token], first: int) -> tuple[list[Token], str]:
    amount = tokens[:first] + tokens[first + 1 :]
    last = amount[-1]
    if last.kind == "word" and units.KNOWN.get(last.text.lower()) == units.KNOWN[tokens[first].text.lower()]:
        amount = amount[:-1]
    return amount, units.KNOWN[tokens[first].text.lower()] if not any(token.kind == "word" for token in amount) else ""
