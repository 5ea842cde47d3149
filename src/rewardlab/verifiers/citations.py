"""The verifier of citations: compares the [n] of a reply with the sources that exist and those that must be cited."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.settings.domain import Share
from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking

from .contract import Verdict, no_verdict, right, verifier, wrong

# the patterns below are bounded, so that they take linear time on any reply
LONGEST = 100_000
"""Longest reply that is read, in characters."""
_NUMBERS = r"\[[0-9]{1,4}(?:[ ]?[,;\-–][ ]?[0-9]{1,4}){0,30}\]"
_CITATION = re.compile(_NUMBERS)
_SPAN = re.compile(r"([0-9]+)(?:[ ]?[-–][ ]?([0-9]+))?")
_QUOTE = re.compile(r"[\"“]([^\"“”]{1,2000})[\"”]([^\"“”.!?\[]{0,80}[.!?]?[ ]?)((?:" + _NUMBERS + r"[ ]?){1,10})?")
_QUOTES = str.maketrans("‘’–—", "''--")


class Gold(NamedTuple):
    """sources: their texts, None if only their number is known.  wanted: sources that must be cited, None if any will do."""

    number: int
    sources: Sequence[str] | None
    wanted: frozenset[int] | None


@verifier
def citations(
    response: str, answer: Any, *, precision: Share = 1.0, recall: Share = 1.0, quotes: bool = False, partial: bool = False
) -> Verdict:
    """Right if every [n] names one of the sources, and exactly the required sources are cited.

    answer: {"sources": texts, or their count; "required": numbers, from 1}, or its JSON text. Without "required", a reply
    must cite at least one source. Reads [1], [1, 3], [2-4] and [1][2]; ignores thinking.

    precision, recall: the least shares of cited sources that are required, and of required sources that are cited, for a reply to
    be right. Below 1 they allow some extra or missing citations. quotes: each text in double quotes must be followed by a citation,
    and occur in one of the sources cited there, up to case, spaces and quote characters.

    parts: precision, recall, f1. partial: a wrong reply that cites only existing sources is paid its f1.
    """
    gold = _gold(answer)
    if isinstance(gold, str):
        return no_verdict(gold)
    if quotes and gold.sources is None:
        return no_verdict("quotations cannot be checked: the gold answer has no source texts")
    text = after_thinking(response)
    if len(text) > LONGEST:
        return wrong(f"longer than {LONGEST} characters", parts=_shares(frozenset(), gold))
    cited = frozenset(n for mark in _CITATION.findall(text) for n in _cited(mark))
    shown = ", ".join(map(str, sorted(cited)))
    parts = _shares(cited, gold)
    if unknown := sorted(n for n in cited if not 1 <= n <= gold.number):
        # an invented source voids the citation scores, so that it earns nothing by `partial` either
        return wrong(f"cites [{unknown[0]}] of {gold.number} sources", shown, parts=dict.fromkeys(parts, 0.0))
    if quotes and (fault := _misquoted(text, gold.sources or ())):
        return wrong(fault, shown, parts=parts)
    if not cited:
        return wrong("cites nothing", parts=parts)
    if parts["precision"] >= precision and parts["recall"] >= recall:
        return right(shown, parts=parts)
    verdict = wrong(_differences(cited, gold.wanted or frozenset()), shown, parts=parts)
    return replace(verdict, value=parts["f1"]) if partial else verdict


def _gold(answer: Any) -> Gold | str:
    """The gold answer, or the reason why it is unusable."""
    try:
        fields = strict_json.parse(answer) if isinstance(answer, str) else answer
    except ValueError as problem:
        return f"the gold answer is not JSON: {problem}"
    sources = fields.get("sources") if isinstance(fields, Mapping) else None
    if isinstance(sources, list | tuple) and sources and all(isinstance(text, str) for text in sources):
        number, texts = len(sources), sources
    elif isinstance(sources, int) and sources > 0:
        number, texts = sources, None
    else:
        return "the gold answer names no sources"
    required = fields.get("required")
    if required is None:
        return Gold(number, texts, None)
    if not required or not all(isinstance(n, int) and 1 <= n <= number for n in required):
        return f"the required sources are not numbers from 1 to {number}"
    return Gold(number, texts, frozenset(required))


def _cited(mark: str) -> list[int]:
    """The numbers of [1, 3-5]. A range that is longer than 100 or backwards counts as its two ends."""
    cited: list[int] = []
    for first, last in _SPAN.findall(mark):
        low, high = int(first), int(last or first)
        cited += range(low, high + 1) if low <= high <= low + 100 else (low, high)
    return cited


def _shares(cited: frozenset[int], gold: Gold) -> dict[str, float]:
    if gold.wanted is None:
        return dict.fromkeys(("precision", "recall", "f1"), float(bool(cited)))
    both = len(cited & gold.wanted)
    return {
        "precision": both / len(cited) if cited else 0.0,
        "recall": both / len(gold.wanted),
        "f1": 2 * both / (len(cited) + len(gold.wanted)),
    }


def _differences(cited: frozenset[int], wanted: frozenset[int]) -> str:
    reasons = [
        f"{verb} {sorted(sources)}"
        for verb, sources in (("does not cite", wanted - cited), ("cites beside", cited - wanted))
        if sources
    ]
    return "; ".join(reasons)


def _misquoted(text: str, sources: Sequence[str]) -> str | None:
    """What is wrong with the first quotation that has no citation, or does not occur in the sources cited for it."""
    for quote, _, marks in _QUOTE.findall(text):
        shortened = quote if len(quote) <= 60 else quote[:59] + "…"
        if not marks:
            return f"the quotation {shortened!r} is not cited"
        cited = _cited(marks)
        # sources are numbered from 1
        if not any(_plain(quote) in _plain(sources[n - 1]) for n in cited):
            return f"{shortened!r} does not occur in source {', '.join(map(str, cited))}"
    return None


def _plain(text: str) -> str:
    return " ".join(text.translate(_QUOTES).lower().split()).strip(" .,;:!?")
