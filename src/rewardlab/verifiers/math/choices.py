"""Multiple choice: read the letter that an answer names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rewardlab.text.answers import NO_ANSWER
from rewardlab.verifiers.choice.options import choose, denied
from rewardlab.verifiers.contract import Verdict, differs, right, wrong

_TEXT = re.compile(r"\\(?:text(?:bf|rm|it)?|mathrm|mathbf)\s?\{([^{}]{0,200})\}")
_CHOICE = re.compile(
    r"(?:(?:option|choice|answer)\s{1,3})?(?:\(([A-Ja-j])\)[.:]?|([A-J])[.:)]|([A-J])(?=\s{0,5}$))(.*)", re.IGNORECASE | re.DOTALL
)
_MAY_BE = re.compile("[A-Ja-j]")
_CONJUNCTION = re.compile(r"\b(?:or|and)\b|[,/&;]")
_LETTER = re.compile(r"(?<![A-Za-z])[A-J](?![A-Za-z'])")
_ARTICLE = re.compile(r"A\s[a-z]")
_LETTERS = dict.fromkeys("ABCDEFGHIJ", "")


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
    rest = rest[2:] if _ARTICLE.match(rest) else rest
    return bool(_CONJUNCTION.search(rest) and _LETTER.search(rest))


def letters(text: str) -> set[str]:
    """The capital letters that stand alone in a text."""
    return set(_LETTER.findall(text))


def in_forms(forms: Iterable[str]) -> Choice | None:
    """The choice that the first form of an answer which names one states."""
    return next((found for form in forms if (found := choice(form))), None)


def in_prose(reply: str) -> tuple[Choice | None, str]:
    """The choice that a reply without a box states, or why it states none: a letter may be ruled out or only mentioned."""
    letters, why = choose(reply, _LETTERS)
    return (Choice(letters, ""), "") if len(letters) == 1 else (None, why)


def same_choice(said: Choice | None, gold: Choice, why: str) -> Verdict:
    if said is None:
        return wrong(f"{NO_ANSWER}: no choice is stated" + f", it {why}" * bool(why and why != NO_ANSWER))
    if hedged(said.rest):
        return wrong("more than one choice is offered", said.letter)
    if said.rest != gold.rest and denied(said.rest):
        return wrong("the choice is said to be wrong", said.letter)
    return right(said.letter) if said.letter == gold.letter else wrong(differs(said.letter, gold.letter), said.letter)
