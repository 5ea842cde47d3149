"""The verifier of formulas of signal temporal logic: is it equivalent to the gold one, and in what does it differ?"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

import numpy as np

from rewardlab.core import seed_of
from rewardlab.settings.domain import PositiveInt
from rewardlab.text import stl
from rewardlab.verifiers.contract import Verdict, no_verdict, right, verifier, wrong

ASPECTS = ("atoms", "semantics", "succinct", "symbols")


@verifier
def stl_equivalent(response: str, answer: object, *, signals: PositiveInt = 512) -> Verdict:
    """Right if the formula in the last line of the reply holds of the same random signals as the gold formula.

    signals: how many are tried; always the same ones for a formula and a gold formula.  parts: the aspects, see `aspects`.  The
    language is that of `text/stl.py`.
    """
    try:
        gold = stl.parse(str(answer))
    except ValueError as problem:
        return no_verdict(f"the gold answer is no formula: {problem}")
    text = stated_formula(response)
    try:
        stl.parse(text)
    except ValueError as problem:
        return wrong(f"the formula cannot be read: {problem}", text, parts=aspects(text, gold, signals))
    found = aspects(text, gold, signals)
    if found["semantics"] == 1.0:
        return right(text, parts=found)
    return wrong(
        f"holds where the gold formula does not, or the reverse, of {1 - found['semantics']:.0%} of signals", text, parts=found
    )


def stated_formula(response: str) -> str:
    """The last line of a reply that is not empty, without a label, quotes or the signs of code and mathematics around it."""
    lines = [line.strip() for line in response.splitlines() if line.strip().strip("`$")]
    text = lines[-1] if lines else ""
    _, colon, rest = text.rpartition(":")
    return (rest if colon else text).strip().strip("`$\"'. ").strip()


def aspects(text: str, gold: stl.Formula, signals: int = 512, wanted: Sequence[str] = ASPECTS) -> dict[str, float]:
    """How good a formula is, from 0 to 1, beside the gold one, in the wanted aspects; a text that is no formula has only symbols.

    atoms: atomic propositions that both have, of those that either has.  semantics: share of random signals of which both say the
    same.  succinct: the gold formula's size over this one's, at most 1.  symbols: how alike the sequences of symbols are.
    """
    try:
        formula = stl.parse(text)
    except ValueError:
        return {aspect: _alike(text, str(gold)) if aspect == "symbols" else 0.0 for aspect in wanted}
    rate: dict[str, Callable[[], float]] = {
        "atoms": lambda: _shared(stl.atoms(formula), stl.atoms(gold)),
        "semantics": lambda: stl.agreement(formula, gold, signals, np.random.default_rng(seed_of("stl", str(formula), str(gold)))),
        "succinct": lambda: min(1.0, stl.size(gold) / stl.size(formula)),
        "symbols": lambda: _alike(text, str(gold)),
    }
    return {aspect: rate[aspect]() for aspect in wanted}


def _shared(own: set[stl.Atom], wanted: set[stl.Atom]) -> float:
    return len(own & wanted) / len(own | wanted)


def _alike(text: str, gold: str) -> float:
    try:
        symbols = stl.tokens(text)
    except ValueError:
        symbols = text.split()
    return difflib.SequenceMatcher(None, symbols, stl.tokens(gold), autojunk=False).ratio()
