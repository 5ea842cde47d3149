"""Where a reply states its answer, and gold answers as data. Nothing here raises on a reply, and everything takes linear time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from .answers import after_thinking, boxed

LONGEST = 20_000
"""Characters of a stated answer that are read."""
MOST = 100_000
"""Characters, up to the end of a reply, in which its answer is looked for."""

# the first character stands apart, without the flag: searching for a set of characters is what makes this quick
_MARK = re.compile(
    r"[AaOoCc#\\<](?i:(?:(?<=\ba)nswers?|(?<=\bo)ption|(?<=\bc)hoice)(?: to th(?:e|is) [a-z]{1,12})?[*_]{0,3}[ ]{0,3}"
    r"(?:(?:is|are|would be|must be|should be)\b|:|=)[*_ ]{0,4}:?"
    r"|(?<=#)###|(?P<box>(?<=\\)boxed\{)|(?P<tag>(?<=<)answer>))"
)
_FINAL = re.compile(r"\b(?:final|correct) {1,3}$", re.IGNORECASE)


def end_of(reply: str) -> str:
    """As much of the end of a reply as an answer is looked for in, without thinking."""
    return after_thinking(reply)[-MOST:]


class Claim(NamedTuple):
    """A place where a reply states its answer. final: called so, or in a box or a tag.  text: up to the next such place."""

    start: int
    final: bool
    text: str


def claims(text: str) -> list[Claim]:
    r"""Every "answer is", "answer:", "####", \boxed{...} and <answer>...</answer> of a text, in order."""
    text = text.replace("</answer>", "\n        ")
    marks = list(_MARK.finditer(text))
    found = []
    for i, mark in enumerate(marks):
        within = text[mark.end() : marks[i + 1].start() if i + 1 < len(marks) else len(text)]
        if mark["box"]:
            within = boxed("\\boxed{" + within) or ""
        begin = mark.start()
        final = bool(mark["box"] or mark["tag"] or _FINAL.search(text, max(0, begin - 12), begin))
        found.append(Claim(begin, final, within.strip()))
    return found


def marked(reply: str) -> str | None:
    r"""What the last <answer> of a reply holds, else its last \boxed, else all after its last "answer:"; None without any."""
    text = end_of(reply)
    before, tag, rest = text.rpartition("<answer>")
    text = rest.partition("</answer>")[0] if tag else before + rest
    if (in_box := boxed(text)) is not None:
        return in_box
    last = None
    for mark in _MARK.finditer(text):
        last = last if mark["box"] else mark
    return text[last.end() :].strip() if last else text.strip() if tag else None


def stated(reply: str) -> str:
    """What is marked as the answer of a reply, else all of it."""
    found = marked(reply)
    return end_of(reply).strip() if found is None else found


def accepted(answer: Any) -> list[str]:
    """The texts that a gold answer accepts: itself, or each of a list. Empty where it holds none that is not blank."""
    several = answer if isinstance(answer, list | tuple) else [answer]
    return [str(one).strip() for one in several if one is not None and str(one).strip()]


def data(answer: Any) -> Any:
    """A gold answer, which may come as JSON: the text of a list or an object is read, all else stays as it is."""
    try:
        return json.loads(answer) if isinstance(answer, str) and answer.strip()[:1] in tuple("[{") else answer
    except (ValueError, RecursionError):
        return answer


def first_json(text: str) -> tuple[Any, str, str] | None:
    """The first list or object in a text, with what stands before and after it; None where none can be read.

    An object that gives a name twice cannot.
    """
    at = min((i for i in (text.find("["), text.find("{")) if i >= 0), default=-1)
    if at < 0 or len(text) > LONGEST:
        return None
    try:
        value, end = json.JSONDecoder(object_pairs_hook=_once).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return value, text[:at], text[end:]


def listed(names: Iterable[object]) -> str:
    return ", ".join(str(name) for name in names)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found
