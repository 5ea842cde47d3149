"""Where a question asks for what is incorrect, or not so, a reply chooses what it says this of: the incorrect option is (B)."""

from __future__ import annotations

import functools
import re

from rewardlab.text.others import OTHER

from .conclusions import UNSURE

_ASKED = re.compile(
    r"(?<!not )(?<!n't )(?<!never )\b(?:which|what|who|select|choose|identify|find|pick|mark|spot|name)\b(?P<what>[^.?!;\n]{0,160})"
    r"|(?P<but>\b(?:except|not|least)\b)[^.?!\n]{0,60}[:?]?\s{0,3}(?:\n|$)",
    re.IGNORECASE,
)
_ELSE = re.compile(
    r"\b(?:do\snot\s(?:choose|select|pick|mark|guess)|don['’]t|never|if|unless|instead|rather|and\snot|but\snot|why|because|when|where|how|reasons?|expla\w{2,6}"
    r"|that(?!\s(?:is|are|was|were|does|do|can|could|would)\b))\b",
    re.IGNORECASE,
)
"""What else a question says than what it asks for: which one explains why it does not run; choose one, and not a wrong one."""
_LONGEST = 5000
_SUBJECT = re.compile(
    r"\bthe\s(?P<what>(?:[a-z'’-]{1,20}\s){1,7}?)(?:is|was|would\sbe|must\sbe|should\sbe)[\s*_:]{1,4}(?:(?:option|statement|choice|answer)\s)?"
    r"(?=(?-i:[*_(]{0,3}[A-Z]\b))",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"(?:(?:option|statement|choice|answer)\s)?(?-i:(?:\((?P<a>[A-Z])\)|(?<![\w(])(?P<b>[A-Z])))[*_]{0,2}"
    r"\s(?:is|are)\s(?:(?:the|an?)\s)?(?P<what>[a-z'’-]{1,20}(?:\s[a-z'’-]{1,20}){0,5})"
    r"[*_]{0,2}(?=[.,;:!?\n]|$)",
    re.IGNORECASE,
)
_DENIES = re.compile(r"\b(?:doubt|den(?:y|ies|ied)|nobody|no\sone)\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z'’-]+")
_GENERIC = frozenset(
    (
        "option",
        "statement",
        "choice",
        "one",
        "answer",
        "that",
        "which",
        "is",
        "are",
        "was",
        "claim",
        "sentence",
        "item",
        "of",
        "these",
        "the",
        "following",
        "a",
        "an",
        "only",
    )
)


@functools.lru_cache(maxsize=1024)
def _sought(question: str) -> frozenset[str]:
    """The words of what a question asks for, if it asks for something that is wrong, not so or an exception; else none."""
    said = [match["what"] or match["but"] or "" for match in _ASKED.finditer(question[-_LONGEST:])]
    asked = " ".join(_ELSE.split(what)[0] for what in said).lower()
    return frozenset(_WORD.findall(asked)) if OTHER.search(asked) else frozenset()


def as_asked(text: str, question: str) -> str:
    """A reply in which the option that is said to be what the question asks for, "the incorrect one", is "the correct answer"."""
    sought = _sought(question) if question else frozenset()
    if not sought:
        return text
    text = _SUBJECT.sub(lambda m: "the correct answer is " if _is_sought(m["what"], sought) else m.group(), text)
    tail = text[-_LONGEST:]
    told = [match for match in _VERDICT.finditer(tail) if _is_sought(match["what"], sought)]
    ends = told and not tail[told[-1].end() :].strip(" .*_\n")
    before = (
        tail[max(tail.rfind(end, 0, told[-1].start()) for end in (". ", "! ", "? ", "\n")) + 1 : told[-1].start()] if ends else ""
    )
    if any(pattern.search(before) for pattern in (OTHER, UNSURE, _DENIES)):
        return text
    # several that are said to be incorrect are not the one that is asked for
    if ends and len({match["a"] or match["b"] for match in told}) == 1:
        text = f"{text.rstrip()}\nThe correct answer is ({told[-1]['a'] or told[-1]['b']})."
    return text


def _is_sought(phrase: str, sought: frozenset[str]) -> bool:
    words = set(_WORD.findall(phrase.lower())) - _GENERIC
    return bool(OTHER.search(phrase)) and words <= sought
