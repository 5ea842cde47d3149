"""Texts read as answers. Plain numbers, which most are, take a short way."""

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
    """A text as it was understood; answer is None where it was not, and why says so."""

    text: str
    spelling: str
    answer: Answer | None
    why: str = ""


@functools.lru_cache(maxsize=16384)
def read(text: str) -> Reading:
    """Never raises."""
    plain = text.strip()
    if _NUMBER.fullmatch(plain):
        return Reading(plain, plain, Value(number(Fraction(plain.replace(",", "")))))
    spelled = plain
    try:
        found = tokens(clean(plain))
        spelled = spelling(found)
        return Reading(plain, spelled, answer(found))
    except (Unreadable, RecursionError) as problem:
        return Reading(plain, spelled, None, str(problem) or "too deep")
