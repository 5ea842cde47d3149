"""Parse texts into answers, with a fast path for plain numbers, which are the most common."""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from typing import NamedTuple

from .answers import answer
from .kinds import Answer, Value
from .text import Unreadable, clean, spelling, tokens
from .trees import number

_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3}){1,4}|[0-9]{1,15})(?:\.[0-9]{1,15})?")


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
        parsed_tokens = tokens(clean(plain))
        spelled = spelling(parsed_tokens)
        return Reading(plain, spelled, answer(parsed_tokens))
    except (Unreadable, RecursionError) as problem:
        return Reading(plain, spelled, None, str(problem) or "too deep")
