"""Multiple choice: read the letter that an answer names."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r"\\(?:text(?:bf|rm|it)?|mathrm|mathbf)\s?\{([^{}]{0,200})\}")
_CHOICE = re.compile(
    r"(?:(?:option|choice|answer)\s{1,3})?(?:\(([A-Ja-j])\)[.:]?|([A-J])[.:)]|([A-J])(?=\s{0,5}$))(.*)", re.IGNORECASE | re.DOTALL
)
_MAY_BE = re.compile("[A-Ja-j]")
_IN_BRACKETS = re.compile(r"\(([A-J])\)")
_CONJUNCTION = re.compile(r"\b(?:or|and)\b|[,/&;]")
_LETTER = re.compile(r"(?<![A-Za-z])[A-J](?![A-Za-z'])")


class Choice(NamedTuple):
    letter: str
    rest: str


def choice(text: str) -> Choice | None:
    """The letter that a text names, and what follows it: "B", "(B)", "B. 42", "(b) 42". Bare letters are capitals."""
    if not _MAY_BE.search(text):
        return None
    plain = _TEXT.sub(r" \1 ", text).replace("$", "").replace("*", "").replace("\\ ", " ").replace("~", " ").strip(" .\t\r\n")
    match = _CHOICE.fullmatch(plain)
    if not match:
        return None
    letter = match[1] or match[2] or match[3]
    # without brackets a small letter may be a word ("a") or a symbol
    if not match[1] and not letter.isupper():
        return None
    return Choice(letter.upper(), match[4].strip())


def hedged(rest: str) -> bool:
    """Whether the text after the letter offers a second letter."""
    return bool(_CONJUNCTION.search(rest) and _LETTER.search(rest))


def letters(text: str) -> set[str]:
    """The capital letters that stand alone in a text."""
    return set(_LETTER.findall(text))


def in_brackets(text: str) -> str | None:
    """The letter in brackets on the last line that has any; None if that line has several different ones."""
    for line in reversed(text.splitlines()):
        if letters := set(_IN_BRACKETS.findall(line)):
            return letters.pop() if len(letters) == 1 else None
    return None
