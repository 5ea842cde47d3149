"""The numbers of steps that a text lists, in the spellings of models: "2, 5", "steps 2-4", bullets, "none of them"."""

from __future__ import annotations

import re
from itertools import takewhile

_RIGHT = r"(?:are|is|seem|seems|look|looks)\s(?:all\s)?(?:right|correct|fine|ok|sound|valid)\b"
# a number in a sum or a decimal is none of a step, nor is one that is said to be right
_NUMBER = rf"(\d{{1,4}})(?:st|nd|rd|th)?(?![\w%]|\.\d|[-–]\d{{1,9}}\s?[+*/=^×]|\s{{0,2}}[+*/=^×]|\s{_RIGHT})"
_NAMED = r"(?:(?:the|from|steps?|lines?|paragraphs?|numbers?|nos?\.?|nr\.?|s)?[\s#_:]{0,3}){0,3}"
_TO = r"\s{0,2}(?:[-–—…]|\.\.\.?|to\b|through\b)\s{0,2}(?:steps?\s)?"
_ITEM = re.compile(rf"{_NAMED}{_NUMBER}(?:{_TO}{_NUMBER})?", re.IGNORECASE)
_BETWEEN = re.compile(r"\s{0,3}(?:(?:[,;&]|and\b|or\b|plus\b|as well as\b|also\b)\s{0,3}){1,3}", re.IGNORECASE)
_NONE = re.compile(
    r"\W{0,4}(?:(?:there (?:are|is|were)|i (?:see|find|found)) )?(?:none\b|nothing\b|"
    r"no(?!\.?\s{0,2}#?\d|\s(?:idea|clue|verdict))\b|"
    rf"n/?a\b|nil\b|zero\b|empty\b|not (?:any|applicable)\b|∅|\\emptyset|\\varnothing|\[\s{{0,2}}\]|\{{\s{{0,2}}\}}|"
    rf"(?:all|every|each)(?:\s(?:of|the|them|these|steps?|\d{{1,4}})){{0,5}}\s{_RIGHT})|\s*[-–—]\s*$",
    re.IGNORECASE,
)
_EXCEPT = re.compile(
    r"\W{0,4}(?:none|nothing|no (?:wrong )?steps?),?\s(?:except|but|besides|other than|apart from|aside from)(?:\sfor)?\s",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s{0,8}(?:[-*•·–+]|(\d{1,4})[.):])(?:\s{1,4}|$)")
_AFTER = re.compile(r"\s{0,2}(?:$|[.:;,(–—-])")
_MARKS = re.compile(r"\\boxed|\\text|\\mathrm|\\[()]|[$`\"'“”‘’]|(?<!\d)\*+|\*+(?!\d)|(?<!\w)_+|_+(?!\w)")
_BRACKETED = re.compile(r"\(([^()]{0,300})\)")
_MOST = 200
"""Lines that a list has at most."""


def listed_numbers(text: str) -> set[int] | None:
    """The numbers in the list that a text begins with, on its first line or on bullet lines; None if it begins with none.

    The empty set where it says that there are none. Ranges stand for all of their numbers; what stands in brackets after a number,
    or after the list, is an explanation, whose numbers do not count. A line that numbers its bullets names steps by what follows
    ("1. Step 4"), or else by the bullet's own number ("4. The sum is wrong").
    """
    lines = [line for line in text.splitlines()[:_MOST] if line.strip(" \t*_:")]
    if not lines:
        return None
    bullets = list(takewhile(_BULLET.match, lines)) if not text.splitlines()[0].strip(" \t*_:") else []
    if not bullets:
        return _line(lines[0])
    found: set[int] | None = None
    for line in bullets:
        own = _bullet(line)
        if own is None:
            break
        found = own | (found or set())
    return found


def _bullet(line: str) -> set[int] | None:
    bullet = _BULLET.match(line)
    assert bullet is not None
    rest = line[bullet.end() :]
    if bullet[1] is None:
        return _line(rest)
    named, end = _leading(_plain(rest))
    return named if named and _AFTER.match(_plain(rest), end) else {int(bullet[1])}


def _line(line: str) -> set[int] | None:
    line = _MARKS.sub("", line)
    if but := _EXCEPT.match(line):
        line = line[but.end() :]
    elif _NONE.match(line):
        return set()
    line = _plain(line)
    if re.fullmatch(r"\s*\d{1,4}(?:\s+\d{1,4})+\W*", line):
        return {int(n) for n in re.findall(r"\d+", line)}
    return _leading(line)[0] or None


def _plain(line: str) -> str:
    """The line without marks and without the brackets that explain a number; a list in brackets stays."""

    def kept(bracket: re.Match[str]) -> str:
        inside, before = bracket[1], line[: bracket.start()].rstrip()
        return f" {inside} " if not before[-1:].isdigit() and _leading(inside)[1] == len(inside) else " "

    line = _MARKS.sub("", line)
    return re.sub(r"[\[\]{}<>]", " ", _BRACKETED.sub(kept, line)).strip()


def _leading(line: str) -> tuple[set[int], int]:
    """The numbers of the list that a line begins with, and where it ends."""
    found, at, end = set[int](), 0, 0
    while item := _ITEM.match(line, at):
        first, last = int(item[1]), int(item[2] or item[1])
        found |= set(range(first, last + 1)) if first <= last else {first, last}
        end = item.end()
        if not (between := _BETWEEN.match(line, end)):
            break
        at = between.end()
    return found, end
