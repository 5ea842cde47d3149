"""Formulas of propositional logic, and whether some of them entail another.

    p   ~p   p&q   p|q   p->q   (p|q)->~r        ~ binds most tightly, then &, |, and -> (which groups to the right)

Letters are a to z. The signs of textbooks (¬ ! ∧ ∨ → =>) are read too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

LONGEST = 120
"""Characters of a formula that is read: each bracket is a call deeper."""
LETTERS = 10
"""Letters of a question of entailment; its table has 2 to that many rows."""

_SYMBOL = re.compile(r"[a-z](?![a-z])|->|[~&|()]|\S")
_OTHER = {"¬": "~", "!": "~", "∧": "&", "∨": "|", "→": "->", "=>": "->"}
_BINDING = {"->": 1, "|": 2, "&": 3}


class Formula(NamedTuple):
    """A letter, or a sign and what it joins."""

    sign: str
    parts: tuple[Formula, ...] = ()


def parse(text: str) -> Formula:
    """The formula that a text writes. Raises ValueError, with the reason, for a text that writes none."""
    if len(text) > LONGEST:
        raise ValueError(f"a formula has at most {LONGEST} characters")
    for other, sign in _OTHER.items():
        text = text.replace(other, sign)
    symbols = _SYMBOL.findall(text)[::-1]
    formula = _joined(symbols, 1)
    if symbols:
        raise ValueError(f"{symbols[-1]!r} is not expected in {text!r}")
    return formula


def _joined(symbols: list[str], least: int) -> Formula:
    """The formula at the end of `symbols` (which are reversed, and used up), joined by signs that bind at least so tightly."""
    left = _single(symbols)
    while symbols and _BINDING.get(symbols[-1], 0) >= least:
        sign = symbols.pop()
        # what follows -> takes further ones: p->q->r is p->(q->r)
        left = Formula(sign, (left, _joined(symbols, _BINDING[sign] + (sign != "->"))))
    return left


def _single(symbols: list[str]) -> Formula:
    symbol = symbols.pop() if symbols else "the end"
    if symbol == "~":
        return Formula("~", (_single(symbols),))
    if symbol == "(":
        inside = _joined(symbols, 1)
        if not symbols or symbols.pop() != ")":
            raise ValueError("a bracket is not closed")
        return inside
    if not re.fullmatch("[a-z]", symbol):
        raise ValueError(f"a letter, ~ or a bracket is expected, and not {symbol}")
    return Formula(symbol)


def holds(formula: Formula, true: Iterable[str]) -> bool:
    """Whether a formula is true where these letters are, and all others are false."""
    sign, parts = formula
    if not parts:
        return sign in true
    first = holds(parts[0], true)
    if sign == "~":
        return not first
    second = holds(parts[1], true)
    return {"&": first and second, "|": first or second, "->": not first or second}[sign]


def letters(formula: Formula) -> set[str]:
    return set().union(*map(letters, formula.parts)) if formula.parts else {formula.sign}


def entails(premises: Sequence[Formula], conclusion: Formula) -> bool:
    """Whether the conclusion is true wherever all premises are, by the table of all cases.

    Raises ValueError for more than LETTERS letters.
    """
    known = sorted(set().union(letters(conclusion), *map(letters, premises)))
    if len(known) > LETTERS:
        raise ValueError(f"a step of {len(known)} letters is too large to be checked; {LETTERS} are the most")
    rows = ({x for x, is_true in zip(known, row, strict=True) if is_true} for row in product((False, True), repeat=len(known)))
    return all(holds(conclusion, true) for true in rows if all(holds(p, true) for p in premises))
