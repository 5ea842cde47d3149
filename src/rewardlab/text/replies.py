"""Locate the answers that a reply states, over one or several lines, and read gold answers given as data.

Nothing here raises on a reply, and everything takes linear time. `answers.py` reads answers that fit on one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .answers import after_thinking, boxed

LONGEST = 20_000
"""Longest stated answer that is read, in characters."""
MOST = 100_000
"""Characters at the end of a reply that are searched for its answer."""

# the first character is outside the case-insensitive group: the regex engine can then skip to a set of characters, which is fast
_MARK = re.compile(
    r"[AaOoCc#\\<](?i:(?:(?<=\ba)nswers?|(?<=\bo)ption|(?<=\bc)hoice)(?: to th(?:e|is) [a-z]{1,12})?[*_]{0,3}[ ]{0,3}"
    r"(?:(?:is|are|would be|must be|should be)\b|:|=)[*_ ]{0,4}:?"
    r"|(?<=#)###|(?P<box>(?<=\\)boxed\{)|(?P<tag>(?<=<)answer>))"
)
_FINAL = re.compile(r"\b(?:final|correct) {1,3}$", re.IGNORECASE)


def end_of(reply: str) -> str:
    """The end of a reply, without thinking: the part that is searched for an answer."""
    return after_thinking(reply)[-MOST:]


class Claim(NamedTuple):
    """A place where a reply states an answer. final: it says "final", or is in a box or a tag.  text: up to the next claim."""

    start: int
    final: bool
    text: str


def claims(text: str) -> list[Claim]:
    r"""Every "answer is", "answer:", "####", \boxed{...} and <answer>...</answer> in a text, in order."""
    # the closing tag ends a line; the replacement has the same length, so positions stay valid
    text = text.replace("</answer>", "\n        ")
    marks = list(_MARK.finditer(text))
    stated_answers = []
    for i, mark in enumerate(marks):
        within = text[mark.end() : marks[i + 1].start() if i + 1 < len(marks) else len(text)]
        if mark["box"]:
            within = boxed("\\boxed{" + within) or ""
        begin = mark.start()
        final = bool(mark["box"] or mark["tag"] or _FINAL.search(text, max(0, begin - 12), begin))
        stated_answers.append(Claim(begin, final, within.strip()))
    return stated_answers


def marked(reply: str) -> str | None:
    r"""The content of the last <answer> of a reply, else of its last \boxed, else all text after its last "answer:"; else None."""
    text = end_of(reply)
    before, tag, after_tag = text.rpartition("<answer>")
    text = after_tag.partition("</answer>")[0] if tag else before + after_tag
    if (in_box := boxed(text)) is not None:
        return in_box
    last = None
    for mark in _MARK.finditer(text):
        # an unclosed box is no statement, as its content was cut off
        last = last if mark["box"] else mark
    return text[last.end() :].strip() if last else text.strip() if tag else None


def stated(reply: str) -> str:
    """The part of a reply that is marked as its answer, or else the whole reply."""
    answer = marked(reply)
    return end_of(reply).strip() if answer is None else answer


def accepted(answer: Any) -> list[str]:
    """The texts that a gold answer accepts: itself, or each of a list. Blank texts are left out, so the result may be empty."""
    texts = answer if isinstance(answer, list | tuple) else [answer]
    return [str(text).strip() for text in texts if text is not None and str(text).strip()]


def data(answer: Any) -> Any:
    """A gold answer that may be JSON: the text of a list or an object is parsed, anything else is returned as it is."""
    try:
        return json.loads(answer) if isinstance(answer, str) and answer.strip()[:1] in tuple("[{") else answer
    except (ValueError, RecursionError):
        return answer


def first_json(text: str) -> tuple[Any, str, str] | None:
    """(value, text before, text after) of the first JSON list or object in a text; None if it cannot be parsed.

    An object with a repeated key is not accepted.
    """
    start = min((i for i in (text.find("["), text.find("{")) if i >= 0), default=-1)
    if start < 0 or len(text) > LONGEST:
        return None
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_once).raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    return value, text[:start], text[end:]


def listed(names: Iterable[object]) -> str:
    return ", ".join(str(name) for name in names)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("a key occurs twice")
    return unique
