"""Whole numbers in English words: forty-two, one hundred and five, minus three. Linear time; nothing raises."""

from __future__ import annotations

import re

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_VALUES = {word: i for i, word in enumerate(_ONES)} | {word: 20 + 10 * i for i, word in enumerate(_TENS)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_WORD = "|".join((*_ONES, *_TENS, "hundred", *_SCALES))
_NUMBER = re.compile(
    rf"[\s*_]{{0,5}}(?P<sign>minus\s|negative\s)?"
    rf"(?P<words>(?:an?\s(?=hundred|thousand|million))?(?:{_WORD})\b(?:(?:\s|-|\sand\s)(?:{_WORD})\b){{0,20}})[*_]{{0,3}}"
    r"(?P<unit>\s(?!and\b|or\b|to\b|of\b|more\b|less\b|times\b|half\b|point\b|over\b|plus\b|minus\b"
    r"|thirds?\b|halves\b|quarters?\b|[a-z]{1,12}ths?\b|dozen)[a-z]{2,15})?[\s.!*_]{0,5}",
    re.IGNORECASE,
)


def in_digits(text: str) -> str:
    """A number in words, perhaps with a unit of one word, in digits: 42 apples. Any other text as it is."""
    match = _NUMBER.fullmatch(text[:300]) if len(text) <= 300 else None
    value = _value(re.split(r"[\s-]+", match["words"].lower())) if match else None
    return text if match is None or value is None else f"{'-' if match['sign'] else ''}{value}{match['unit'] or ''}"


def _value(words: list[str]) -> int | None:
    """The number that the words name; None for a list of numbers, as "one two three"."""
    total, part, last = 0, 0, 10**10
    smallest = 10**12
    for word in words:
        if word in ("a", "an", "and"):
            continue
        if word in _SCALES:
            if _SCALES[word] >= smallest or not (part or words[0] in ("a", "an")):
                return None
            smallest = _SCALES[word]
            total, part, last = total + (part or 1) * smallest, 0, 10**10
        elif word == "hundred":
            if part > 9:
                return None
            part, last = (part or 1) * 100, 100
        else:
            value = _VALUES[word]
            # twenty-two, but neither two-twenty nor twenty-twelve
            if not (value < last and (last > 99 or (last >= 20 and 0 < value < 10))):
                return None
            part, last = part + value, value
    return total + part
