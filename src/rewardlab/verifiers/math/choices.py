"""Multiple choice: read the letter that an answer names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from rewardlab.text.answers import NO_ANSWER
from rewardlab.text.others import OTHER
from rewardlab.verifiers.choice.conclusions import UNSURE
from rewardlab.verifiers.choice.options import choose, denied
from rewardlab.verifiers.contract import Verdict, differs, right, wrong

_TEXT = re.compile(r"\\(?:text(?:bf|rm|it)?|mathrm|mathbf)\s?\{([^{}]{0,200})\}")
_CHOICE = re.compile(
    r"(?:(?:option|choice|answer)\s{1,3})?(?:\(([A-Ja-j])\)[.:]?|([A-J])[.:)]|([A-J])(?=\s{0,5}$))(.*)", re.IGNORECASE | re.DOTALL
)
_MAY_BE = re.compile("[A-Ja-j]")
_ENDS = re.compile(r"\(([A-J])\)(?:\s?[0-9][^\s()]{0,20}|\s(?:is\s(?:correct|right|true)|works|holds))?[\s.$}!*]{0,8}$")
_LINES = 50
_GIVES = re.compile(
    r"(?:\b(?:is|be|or|us|leaves|leaving|get|gives|giving|yields|elimination|(?:corresponds|points|leads|equal) to"
    r"|conclude that|only|so|thus|hence|therefore|choice)\b,?|\\Rightarrow|⇒|→|=|[0-9])[\s$,]{0,4}$",
    re.IGNORECASE,
)
"""What stands before a letter that is the answer."""
_AGAINST = re.compile(
    r"\b(?:ruled?|out|drop\w{0,4}|impossible|fail\w{0,2}|trap|tempting|invalid|flawed|naive|erroneous|weakest|mistaken|bogus|junk|old)\b",
    re.IGNORECASE,
)
_CONJUNCTION = re.compile(r"\b(?:or|and)\b|[,/&;]")
_LETTER = re.compile(r"(?<![A-Za-z])[A-J](?![A-Za-z'])")
_ARTICLE = re.compile(r"A\s(?!or\b|and\b|nor\b)[a-z]")
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


def in_prose(reply: str, question: str = "") -> tuple[Choice | None, str]:
    """The choice that a reply without a box states, or why it states none: a letter may be ruled out or only mentioned."""
    letters, why = choose(reply, _LETTERS, question)
    letters = letters or _at_the_end(reply)
    return (Choice(letters, ""), "") if len(letters) == 1 else (None, why)


def _at_the_end(reply: str) -> str:
    """The letter in brackets with which the last line ends, if no line before it ends so with another."""
    *before, last = [_ended(line) for line in reply.rstrip().splitlines()[-_LINES:]] or [""]
    return "" if {*before} - {"", last} else last


def _ended(line: str) -> str:
    """The letter in brackets at the end of a line that says it to be the answer: so the area is 6, which is (B)."""
    line = _TEXT.sub(r"\1", line[-500:])
    found = _ENDS.search(line)
    if not found or letters(line) != {found[1]} or not _GIVES.search(line[: found.start()]):
        return ""
    return "" if OTHER.search(line) or UNSURE.search(line) or _AGAINST.search(line) else found[1]


def same_choice(said: Choice | None, gold: Choice, why: str) -> Verdict:
    if said is None:
        return wrong(f"{NO_ANSWER}: no choice is stated" + f", it {why}" * bool(why and why != NO_ANSWER))
    if hedged(said.rest):
        return wrong("more than one choice is offered", said.letter)
    if said.rest != gold.rest and denied(said.rest):
        return wrong("the choice is said to be wrong", said.letter)
    return right(said.letter) if said.letter == gold.letter else wrong(differs(said.letter, gold.letter), said.letter)
