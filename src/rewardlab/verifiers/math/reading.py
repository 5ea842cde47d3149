"""Parse texts into answers, with a fast path for plain numbers, which are the most common."""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from typing import NamedTuple

from rewardlab.text.escapes import undoubled

from .answers import answer
from .kinds import Answer, Parts, Value
from .letters import as_words, lettered
from .parts import parts
from .polynomials import allowance
from .text import Unreadable, clean, spelling, tokens
from .trees import number

_NUMBER = re.compile(r"[-+]?(?:[1-9][0-9]{0,2}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,15})?")


class Reading(NamedTuple):
    """A parsed text. answer: None if it could not be parsed, and then `why` is the reason.  spelling: for textual comparison."""

    text: str
    spelling: str
    answer: Answer | None
    why: str = ""


# a gold answer is read once for every reply of its group, and again in every epoch
@functools.lru_cache(maxsize=16384)
def read(text: str) -> Reading:
    """Parse a text. Never raises."""
    plain = text.strip()
    if _NUMBER.fullmatch(plain):
        return Reading(plain, plain, Value(number(Fraction(plain.replace(",", "")))))
    spelled = plain
    try:
        with allowance():
            if (found := _parts(plain)) is not None:
                return Reading(plain, spelled, found)
            parsed_tokens = as_words(tokens(clean(undoubled(plain))))
            spelled = spelling(parsed_tokens)
            return Reading(plain, spelled, lettered(answer(parsed_tokens), parsed_tokens))
    except (Unreadable, RecursionError) as problem:
        return Reading(plain, spelled, None, str(problem) or "too deep")


def _parts(text: str) -> Answer | None:
    texts = parts(text)
    try:
        return Parts(tuple(answer(tokens(clean(part))) for part in texts)) if texts else None
    except Unreadable:
        return None
