"""The verifier of quantities given as multiples of a symbol, such as reactions in multiples of a load P."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from rewardlab.settings.domain import NonNegativeFloat
from rewardlab.text.answers import after_thinking
from rewardlab.text.boxes import boxes, inside

from .contract import Verdict, differs, no_verdict, right, verifier, wrong

LONGEST, MOST = 500, 50
"""Most characters of a box, and most quantities of an answer."""
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_DROPPED = re.compile(r"\\(?:cdot|times|left|right|quad|[,;!: ])|\\(?:text|mathrm)\{[^{}]*\}|[\s$*()]")
_NUMBER = r"\d{1,15}(?:\.\d{1,15})?"
_NAMED = re.compile(r"^.*(?:=|≈|\\approx)")


@verifier
def coefficients(
    response: str, answer: Any, *, symbol: str = "P", tolerance: NonNegativeFloat = 1e-4, extra: bool = False
) -> Verdict:
    r"""Right if the boxes of the reply hold the gold multiples of the symbol, in any order: \boxed{0.5P, \frac{3P}{2}}.

    answer: a list such as ["0.5P", "1.5P"], or such a text.  0 may stand without its symbol; R_A = 3P is 3P.  tolerance: absolute.
    extra: whether the reply may state others besides (which pays for stating all that could be right).
    """
    gold = _read([str(item) for item in answer] if isinstance(answer, list | tuple) else [str(answer)], symbol)
    if not gold:
        return no_verdict(f"the gold answer is no list of multiples of {symbol}")
    found = boxes(after_thinking(response))
    if not any(inside(box) for box in found):
        return wrong("nothing is boxed")
    texts = [inside(box) for box in found]
    said = _read(texts, symbol) if all(len(text) <= LONGEST for text in texts) else None
    shown = "; ".join(texts)[:LONGEST]
    if said is None:
        return wrong(f"a box holds something else than multiples of {symbol}", shown)
    # each gold multiple takes one that is stated: a quantity that is wanted twice must be stated twice
    left = list(said)
    for value in gold:
        near = min(left, key=lambda x: abs(x - value), default=None)
        if near is None or abs(near - value) > tolerance:
            return wrong(differs(shown, answer), shown)
        left.remove(near)
    return wrong(f"states {len(said)} quantities for {len(gold)}", shown) if left and not extra else right(shown)


def _read(texts: Iterable[str], symbol: str) -> list[Fraction] | None:
    """The coefficients in the items of all texts; None where one is no multiple."""
    items = [item for text in texts for item in re.split(r"(?<!\\)[,;]|\n|\band\b", text) if item.strip()]
    values = [_coefficient(item, symbol) for item in items] if len(items) <= MOST else [None]
    return None if None in values else [value for value in values if value is not None]


def _coefficient(item: str, symbol: str) -> Fraction | None:
    # the symbol may be set upright, and the minus be a typographic one
    plain = re.sub(rf"\\(?:text|mathrm)\{{\s?({re.escape(symbol)})\s?\}}", r"\1", item.replace("−", "-"))
    text = _DROPPED.sub("", _FRACTION.sub(r"\1/\2", _NAMED.sub("", plain)))
    # 3/2P is (3/2)P, as the released reward of BeamPERL reads it; 3P/2 is the same
    found = re.fullmatch(rf"([+-]?)({_NUMBER})?(?:/({_NUMBER}))?({re.escape(symbol)})?(?:/({_NUMBER}))?", text)
    if not found or not (found[2] or found[4]) or (found[3] and not found[2]):
        return None
    divisors = [Fraction(x) for x in (found[3], found[5]) if x]
    value = Fraction(found[2] or 1)
    # a multiple without its symbol is one only if it is 0
    if 0 in divisors or (value and not found[4]):
        return None
    for divisor in divisors:
        value /= divisor
    return -value if found[1] == "-" else value
