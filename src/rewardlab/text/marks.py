"""Find what a reply marks as its answer, "the answer is 5", and whether it takes it back. Linear time; nothing raises."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .boxes import boxes
from .numbers import LONGEST, last_number
from .revoked import may_revoke, revoked
from .stacked import stack
from .turns import retracted, without_courtesies

_MARK = re.compile(
    r"answer[*_}]{0,3}\s{0,3}(?:(?:is|remains|(?:w|sh)ould\sbe|must\sbe|equals)\b|:|=|(?:—\s?|[–-]\s)(?=[$*]{0,3}-?[0-9]))\s{0,3}:?|####",
    re.IGNORECASE,
)
MARKS = 20
"""Most marks of a reply that are looked at, from its end."""
_DOING = ("can ", "to ", "will ", "could ", "must ")
"""Before these, to answer is something to do: "the questions that he can answer: ..."."""
_OPENED = re.compile(r"\\[a-z]{2,8}\s?\{[^{}]{0,14}$")
_STEP = re.compile(r"(?:step|part|case|method|day|option|[0-9]{1,2}[.)])\s", re.IGNORECASE)
_STATED = re.compile(
    r"[\s*_:]{0,9}(?:\$\$[^$]{1,200}\$\$|\$[^$\n]{1,200}\$|\\\([^\n]{1,200}?\\\)|\\\[[^\n]{1,200}?\\\]"
    r"|\([^()\n]{1,60}\)|(?:[^,;:()\[\n–—.!]|[.,](?=[0-9])){1,60}?(?=\s-|\s?[,;:()\[\n–—.!✗✘❌]|\s(?:but|and|which|though|although|yet|is|was)\b|$))"
)
"""What stands behind a mark, up to what is said of it."""
_NO = re.compile(
    r"[\s*_:$\"“(]{0,9}(?:\\boxed\s?\{\s?)?(?:\\text(?:bf|rm)?\s?\{\s?)?(?:no|false|incorrect|wrong|untrue|not|never)\b",
    re.IGNORECASE,
)
"""An answer that says itself that something is not so: no, that is not true."""
_CLOSINGS, _LONGEST = 8, 400
_OPEN_END = re.compile(r"\b(?:and|or|either|oder|ou)[\s*_$,:]{0,6}$", re.IGNORECASE)
"""The end of a line that goes on in the next one."""
_GOES_ON = re.compile(
    r"\s{0,9}[*_>-]{0,3}\s?(?:and|or|oder|ou)\b,?\s(?:(?:maybe|perhaps|possibly|else|also|even|it|could|might|be|is)\s){0,4}"
    r"[*_$(\\]{0,6}(?:[A-Za-z]\s?=\s?)?[-−]?\s?(?:[0-9]|[dt]?frac|sqrt)",
    re.IGNORECASE,
)
"""How the next line adds a value to the line before."""
_DISPLAYS = (("$$", "$$"), ("\\[", "\\]"))


def after_answer(text: str, marks: Sequence[re.Match[str]] | None = None) -> str | None:
    """The rest of the line after the last "answer is", "answer:" or "####"; None if there is none or nothing follows it.

    A heading states nothing: "#### Step 2: Add the costs" and "the answer is the sum of these:", with more to come.
    """
    # headings are few, and each is looked at together with all that follows it
    for mark in reversed((marks_of(text) if marks is None else marks)[-MARKS:]):
        stated = _after(text, mark)
        if stated is None or not _heading(mark.group(), *stated):
            return stated and stated[0]
    return None


def marks_of(text: str) -> list[re.Match[str]]:
    # most replies have none, and finding that out takes less time than the pattern
    if "####" not in text and "answer" not in text.lower():
        return []
    return [mark for mark in _MARK.finditer(text) if not text.endswith(_DOING, max(0, mark.start() - 8), mark.start())]


def _after(text: str, mark: re.Match[str]) -> tuple[str, str] | None:
    """The line or displayed formula after a mark, and the text after that."""
    after_mark = text[mark.end() :].strip(" \t\r\n*_:")
    if below := stack(after_mark, whole=True):
        return below.told(), ""
    for opened, closed in _DISPLAYS:
        if after_mark.startswith(opened) and (end := after_mark.find(closed, len(opened))) > 0:
            formula = after_mark[len(opened) : end].strip()
            return (formula, "") if formula else None
    line, _, rest = after_mark.partition("\n")
    while rest and len(line) < LONGEST and (_OPEN_END.search(line, max(0, len(line) - 12)) or _GOES_ON.match(rest)):
        more, _, rest = rest.lstrip().partition("\n")
        line = f"{line.rstrip()} {more}"
    line = line.strip(" \t\r*_")
    if line.startswith("}") and _OPENED.search(text, max(0, mark.start() - 24), mark.start()):
        # the brace of \textbf{Answer: } 12
        line = line[1:].lstrip(" *_:")
    return (line, rest) if line else None


def _heading(mark: str, line: str, rest: str) -> bool:
    """Whether what follows a mark is the title of what comes after it."""
    if not rest or not rest.strip():
        return False
    if line.endswith(":"):
        return True
    if mark != "####" or (last_number(line) is not None and not _STEP.match(line) and len(line) <= 40):
        return False
    return any(sign.isdigit() for sign in rest)


def states(text: str) -> bool:
    """Whether a reply marks its answer, by a box or by "answer is"."""
    return "\\boxed" in text or after_answer(text) is not None


def taken_back(text: str, marks: Sequence[re.Match[str]] | None = None) -> bool:
    """Whether a reply takes its last box, or what it marks last as its answer, back.  marks: what `marks_of` found."""
    start = text.rfind("\\boxed")
    if start >= 0:
        may_be = may_revoke(text[start + 7 :][:_LONGEST])
        at_once = may_be and any(revoked(text, end + 1) for end in _closings(text, start)) and not _NO.match(text, start)
    else:
        marks = marks_of(text) if marks is None else marks
        stated = _STATED.match(text, marks[-1].end()) if marks else None
        at_once = bool(stated and revoked(text, stated.end()) and not _NO.match(stated.group()))
    # most replies take nothing back, and finding that out takes less time than finding the boxes
    if not at_once and not retracted(text[max(start, 0) :]):
        return False
    found = boxes(text)
    end = found[-1].end if found else marks[-1].end() if marks else 0
    return (at_once and (not found or revoked(text, end))) or retracted(without_courtesies(text[end:]))


def _closings(text: str, start: int) -> Iterator[int]:
    """Where the first braces after a place are closed."""
    for _ in range(_CLOSINGS):
        if (start := text.find("}", start + 1)) < 0:
            return
        yield start
