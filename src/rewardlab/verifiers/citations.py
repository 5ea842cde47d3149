"""Citations [n] held against the sources that were given, and those that are needed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking

from .contract import Verdict, no_verdict, right, verifier, wrong

LONGEST = 100_000
"""Characters of a reply that is looked at."""
_NUMBERS = r"\[[0-9]{1,4}(?:[ ]?[,;\-–][ ]?[0-9]{1,4}){0,30}\]"
_CITATION = re.compile(_NUMBERS)
_SPAN = re.compile(r"([0-9]+)(?:[ ]?[-–][ ]?([0-9]+))?")
_QUOTE = re.compile(r"[\"“]([^\"“”]{1,2000})[\"”]([^\"“”.!?\[]{0,80}[.!?]?[ ]?)((?:" + _NUMBERS + r"[ ]?){1,10})?")
_QUOTES = str.maketrans("‘’–—", "''--")


class Gold(NamedTuple):
    """sources: their texts, None where only their number is known.  wanted: None where any source may be cited."""

    number: int
    sources: Sequence[str] | None
    wanted: frozenset[int] | None


@verifier
def citations(
    response: str, answer: Any, *, precision: float = 1.0, recall: float = 1.0, quotes: bool = False, partial: bool = False
) -> Verdict:
    """Right where every [n] names one of the sources, and the sources that are needed are cited, and no others.

    answer: {"sources": texts, or how many there are; "required": numbers, from 1}, or its JSON text. Without "required" a reply
    must cite at least one source. Read are [1], [1, 3], [2-4] and [1][2]; thinking is left out.

    precision, recall: the shares of cited sources that are required, and of required sources that are cited, from which on a
    reply is right: below 1, citing too many, or too few, is forgiven. quotes: each text in double quotes must be cited right behind
    it, and occur in one of the sources that are cited there, but for case, spaces and the kind of quotes.

    parts: precision, recall, f1. partial: a wrong reply that names only given sources is paid its f1.
    """
    gold = _gold(answer)
    if isinstance(gold, str):
        return no_verdict(gold)
    if quotes and gold.sources is None:
        return no_verdict("quotations cannot be looked up: the gold answer holds no texts")
    text = after_thinking(response)
    if len(text) > LONGEST:
        return wrong(f"longer than {LONGEST} characters", parts=_shares(frozenset(), gold))
    cited = frozenset(n for mark in _CITATION.findall(text) for n in _cited(mark))
    shown = ", ".join(map(str, sorted(cited)))
    parts = _shares(cited, gold)
    if strange := sorted(n for n in cited if not 1 <= n <= gold.number):
        return wrong(f"cites [{strange[0]}] of {gold.number} sources", shown, parts=dict.fromkeys(parts, 0.0))
    if quotes and (fault := _misquoted(text, gold.sources or ())):
        return wrong(fault, shown, parts=parts)
    if not cited:
        return wrong("cites nothing", parts=parts)
    if parts["precision"] >= precision and parts["recall"] >= recall:
        return right(shown, parts=parts)
    found = wrong(_amiss(cited, gold.wanted or frozenset()), shown, parts=parts)
    return replace(found, value=parts["f1"]) if partial else found


def _gold(answer: Any) -> Gold | str:
    """What is asked for, or what is wrong with the gold answer."""
    try:
        given = strict_json.parse(answer) if isinstance(answer, str) else answer
    except ValueError as problem:
        return f"the gold answer is no JSON: {problem}"
    sources = given.get("sources") if isinstance(given, Mapping) else None
    if isinstance(sources, list | tuple) and sources and all(isinstance(text, str) for text in sources):
        number, texts = len(sources), sources
    elif isinstance(sources, int) and sources > 0:
        number, texts = sources, None
    else:
        return "the gold answer names no sources"
    required = given.get("required")
    if required is None:
        return Gold(number, texts, None)
    if not required or not all(isinstance(n, int) and 1 <= n <= number for n in required):
        return f"the required sources are not numbers from 1 to {number}"
    return Gold(number, texts, frozenset(required))


def _cited(mark: str) -> list[int]:
    """The numbers of [1, 3-5]. A span of over a hundred, or backwards, is read as its ends."""
    found: list[int] = []
    for first, last in _SPAN.findall(mark):
        low, high = int(first), int(last or first)
        found += range(low, high + 1) if low <= high <= low + 100 else (low, high)
    return found


def _shares(cited: frozenset[int], gold: Gold) -> dict[str, float]:
    if gold.wanted is None:
        return dict.fromkeys(("precision", "recall", "f1"), float(bool(cited)))
    both = len(cited & gold.wanted)
    return {
        "precision": both / len(cited) if cited else 0.0,
        "recall": both / len(gold.wanted),
        "f1": 2 * both / (len(cited) + len(gold.wanted)),
    }


def _amiss(cited: frozenset[int], wanted: frozenset[int]) -> str:
    said = [
        f"{what} {sorted(some)}" for what, some in (("does not cite", wanted - cited), ("cites beside", cited - wanted)) if some
    ]
    return "; ".join(said)


def _misquoted(text: str, sources: Sequence[str]) -> str | None:
    """What is wrong with the first quotation that is not cited, or not to be found where it is said to stand."""
    for quote, _, marks in _QUOTE.findall(text):
        shown = quote if len(quote) <= 60 else quote[:59] + "…"
        if not marks:
            return f"the quotation {shown!r} is not cited"
        places = _cited(marks)
        if not any(_plain(quote) in _plain(sources[n - 1]) for n in places):
            return f"{shown!r} does not stand in source {', '.join(map(str, places))}"
    return None


def _plain(text: str) -> str:
    return " ".join(text.translate(_QUOTES).lower().split()).strip(" .,;:!?")
