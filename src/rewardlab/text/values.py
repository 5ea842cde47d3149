"""Find the formulas and numbers of a text, of which one may be its answer. Linear in the length of the text; nothing raises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from .numbers import IN_TEXT

_FORMULA = re.compile(
    r"\$\$(?P<a>[^$]{1,1000})\$\$|\\\[(?P<b>(?:[^\\]|\\[^\]\[]){1,1000}?)\\\]|\\\((?P<c>(?:[^\\]|\\[^)(]){1,1000}?)\\\)"
    r"|(?<!\\)\$(?P<d>[^$\s](?:[^$\n]{0,500}[^$\s\\])?)\$(?![0-9])"
)
VALUE = "\x01"
_DIGIT = re.compile("[0-9]")
TO_LAST_DIGIT = re.compile("(?s:.*)[0-9]")
# what most numbers are: digits between words, of which none is a factor or a sign
_AMONG_WORDS = re.compile(
    r"(?<=[a-z,] )(?<!minus )(?<!negative )[0-9]{1,9}(?= (?!(?i:dozen|hundred|thousand|million|billion|trillion))[A-Za-z(])"
)
_SIGNS = ("minus", "Minus", "MINUS", "negative", "Negative", "NEGATIVE")
_BARE = re.compile(r"(?:\\(?:angle|triangle|overline|ell|mathbf|vec|mathcal)\b|_\{?[0-9]\}?|[A-Za-z{}()\[\],_'\s|]){1,40}")
_ATTACHED = re.compile(r"(?:st|nd|rd|th)\b|[A-Za-z]{1,9}[0-9_]")
_BEGINS = re.compile(
    r"(?<=\\\]|\$\$)\s{1,3}(?=[A-Z][a-z]{1,15}[\s,])|(?<=\\\)|[^$]\$)\s{1,3}(?=(?:So|Thus|Hence|Therefore|Then|Finally|In\stotal)[\s,])"
)


class Value(NamedTuple):
    """A formula or number at start:end of the text."""

    start: int
    end: int
    formula: bool


def values_of(text: str) -> list[Value]:
    """The formulas of a text, and the numbers of its last sentence: all numbers, if that has no value or begins in a formula."""
    formulas = [Value(*match.span(), True) for match in _FORMULA.finditer(text)] if "\\" in text or text.count("$") > 1 else []
    last = TO_LAST_DIGIT.match(text)
    at = sentence_start(text, max(last.end() if last else 0, formulas[-1].start if formulas else 0))
    before = [formula for formula in formulas if formula.start < at]
    if before and before[-1].end > at:
        return _from(text, 0, formulas)
    own = _from(text, at, formulas[len(before) :])
    return before + own if own else _from(text, 0, formulas)


def _from(text: str, at: int, formulas: list[Value]) -> list[Value]:
    """The formulas, and the numbers that begin at a place or after it."""
    numbers: list[Value] = []
    for formula in [*formulas, Value(len(text), len(text), True)]:
        for start, end in _numbers(text, at, formula.start):
            if numbers and text[numbers[-1].end : start] == ":":
                # 2:3 is one value
                numbers[-1] = Value(numbers[-1].start, end, False)
            elif not _ATTACHED.match(text, end) and not (start and (text[start - 1].isalpha() or text[start - 1] == "_")):
                numbers.append(Value(start, end, False))
        at = formula.end
    return sorted(formulas + numbers)


def _numbers(text: str, at: int, stop: int) -> Iterator[tuple[int, int]]:
    """Where the numbers of text[at:stop] are. Looking near digits alone takes less time than trying the pattern at every letter."""
    while digit := _DIGIT.search(text, at, stop):
        begin = digit.start()
        if plain := _AMONG_WORDS.match(text, begin, stop):
            yield begin, (at := plain.end())
            continue
        while begin > at and text[begin - 1] in "$-−. ":
            begin -= 1
        if text.endswith(_SIGNS, at, begin):
            begin = max(at, begin - 8)
        match = IN_TEXT.search(text, begin, stop)
        if match is None:
            return
        yield match.start(), match.start() + len(match.group().rstrip(","))
        at = match.end()


def masked_of(text: str, values: list[Value]) -> str:
    """The text with one sign for each value, and a new line where a sentence follows a formula without a full stop."""
    text = text.replace(VALUE, " ")
    at, parts = 0, []
    for value in values:
        parts.append(text[at : value.start])
        at = value.end
        if value.formula and _BEGINS.match(text, at):
            text = f"{text[:at]}\n{text[at + 1 :]}"
    return VALUE.join([*parts, text[at:]])


def sentence_start(text: str, place: int) -> int:
    """Where the sentence of a place begins."""
    ends = text.rfind(". ", 0, place), text.rfind("! ", 0, place), text.rfind("? ", 0, place), text.rfind("\n", 0, place)
    return max(ends) + 1


def is_name(text: str, value: Value) -> bool:
    """Whether a formula is only a name, as $ABC$, $n$ and $(a, b)$ are."""
    return value.formula and bool(_BARE.fullmatch(undelimited(text[value.start : value.end])))


def undelimited(formula: str) -> str:
    """A formula without its delimiters."""
    size = 1 if formula[0] == "$" and not formula.startswith("$$") else 2
    return formula[size:-size].strip()
