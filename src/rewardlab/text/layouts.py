"""Several answers as replies lay them out, told in a sentence: bold ones, a list below "The solutions are:", a heading above."""

from __future__ import annotations

import re

TAIL = 1000
"""Characters at the end of a reply that are looked at."""
_HEADING = re.compile(r"(?:^|\n)[\s#*_]{0,9}final\sanswers?[\s*_:]{0,6}\n\s{0,9}(?=[^\n]{1,200}$)", re.IGNORECASE)
_BOLD = re.compile(r"\*\*\s?(?:(\$[^$*\n]{1,60}\$)|([A-Za-z]\s?=\s?-?[0-9][^*\n$\\]{0,30}))\s?\*\*")
_BOTH = re.compile(r"\*\*(-?[0-9][0-9.,/]{0,20})\*\*(?=,?\s(?:and|or|\*\*)|[,.]|$)")
_LIST = re.compile(
    r"(?:^|\n|[.!]\s|\b(?:so|thus|hence|therefore),?\s)[\s*_]{0,4}(?:so|thus|hence|therefore)?,?\s?(?:the\s)?(?:final\s|possible\s|real\s|two\s|three\s)?"
    r"(?:solutions|roots|answers|zeros|zeroes)(?:\s(?:of|to|for)\s(?:the\s(?:equation|polynomial|quadratic|system)|this\sequation|[a-z]))?"
    r"\s(?:are|is)(?:\s(?:the\sfollowing|then|therefore))?:[*_]{0,2}\s{0,3}\n"
    r"(?P<items>(?:\s{0,6}(?:[-•*]|[1-9][.)])\s[^\n]{1,100}(?:\n|$)){2,20})$",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s{0,6}(?:[-•*]|[1-9][.)])\s(?:\*\*)?([^\n*]{1,100}?)(?:\*\*)?[,;.]?\s{0,3}(?:\n|$)")
_MARKS = tuple("-•*123456789")
_WORDS = re.compile(r"(?<!\\)\b[A-Za-z]{2,}\s[a-z]{2,}")


def in_sentence(text: str) -> str:
    """The text with the several answers at its end in one sentence, if they are laid out in another way."""
    # most replies have neither bold answers nor a list at their end, and finding that out takes less time than the patterns
    in_list = text[text.rfind("\n", 0, len(text) - 1) + 1 :].lstrip()[:1] in _MARKS
    if not in_list and text.count("**", -TAIL) < 4:
        return text
    start = max(0, len(text) - TAIL)
    tail = text[start:]
    if in_list and (listed := _LIST.search(tail)):
        items = [item.strip() for item in _ITEM.findall(listed["items"])]
        if len(items) > 1 and not any(map(_WORDS.search, items)):
            tail = f"{tail[: listed.start('items')].rstrip()} {', '.join(items[:-1])} and {items[-1]}"
    if "**" in tail:
        tail = _BOLD.sub(lambda match: match[1] or f"${match[2]}$", tail)
        tail = _BOTH.sub(r"\1", tail) if len(_BOTH.findall(tail)) > 1 else tail
    return text[:start] + tail


def under_heading(text: str) -> str:
    """The one line under a last heading "Final Answer"; else the text."""
    if "inal" not in text[-TAIL:] and "INAL" not in text[-TAIL:]:
        return text
    headings = list(_HEADING.finditer(text, max(0, len(text) - TAIL)))
    return text[headings[-1].end() :] if headings else text
