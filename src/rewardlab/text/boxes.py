r"""Find the boxes of a reply, \boxed{...}, and those that together state its answer. Linear in the length of the text."""

from __future__ import annotations

import re
from typing import NamedTuple

from .numbers import number
from .offers import ALONE, CORRECTING, GUESSING, OFFERING, OPENING

FARTHEST, FARTHEST_OFFERED = 80, 300
"""Characters between two boxes that state one answer; between two of which the second one is offered."""
SHORT = 20
"""Most characters of an "or" that stands alone between two boxes."""
MOST = 100
"""Most boxes of one statement."""
_FRAMED = re.compile(r"\\(?:fbox|framebox)\s?\{")
_UNBRACED = re.compile(r"\\boxed\s?(-?[0-9]{1,40}(?:[.,/][0-9]{1,40})?|[A-Za-z](?![A-Za-z]))")
_BRACES = re.compile(r"\\boxed\s?\{|\\[{}\\]|[{}]")
_CLUTTER = re.compile(r"\\(?:q?quad|[()\[\],;!: ])|\\text\s?\{([^{}]{0,40})\}|\\\\|[$*&{}]")
_NAME = r"[A-Za-z](?:_?[A-Za-z0-9]{1,3}|_?[0-9'])?|\\(?:angle|alpha|beta|gamma|theta|lambda)\s?[A-Z]{0,3}"
_LABEL = re.compile(rf"(?:^|[\s,;:.])({_NAME})\s?=\s{{0,3}}$")
_JOINT = re.compile(
    rf"[\s,;.]{{0,9}}(?P<word>and|or|as well as)?\s{{0,9}}(?:[-•]|[1-9][.)])?\s{{0,9}}(?:(?:{_NAME})\s?=)?\s{{0,9}}", re.IGNORECASE
)
_SIGN_OF_OR = re.compile(r"^[\s$]{0,6}[/|][\s$]{0,6}$|[?∨~]|\\(?:lor|vee|mid|sim)\b")
_EMPHASIS = re.compile(r"^(?:\*{1,3}|_{1,3}|`|~~)(?=[\s,;.)])")
_CASE = re.compile(r"[\s$]{0,3}(?:if|when|for)\b", re.IGNORECASE)
"""What follows both of two boxes that hold in different cases."""
_WITHIN = re.compile(
    r"\s{0,3}(?:\\(?:cup|cap|cdot|times|div|pm|leq?|geq?|in|to)\b|[-+*^_=<>]{1,2}\s{0,3}(?:[0-9({\\$|]|(?![ou]\s)[A-Za-z](?![A-Za-z])))"
)
"""What follows a box that is but a part of a formula."""
_SIMPLY = re.compile(r"\bor\s(?:simply|just)\s{0,3}$", re.IGNORECASE)
_SETTLING = re.compile(
    r"\b(?:rather|so|thus|hence|therefore|then|total|finally|altogether|giving|gives|which|wait|not|no)\b|=\s{0,3}$|n't\b",
    re.IGNORECASE,
)
_UNSETTLED = re.compile(
    r"\b(?:if|or|whether|why)\s(?:not|so|no)\b|\bnot\s(?:sure|certain)\b|\bthen\sagain\b|\bno\sidea\b", re.IGNORECASE
)
"""Words of _SETTLING that settle nothing here."""
_FURTHER = rf"(?!{OPENING.pattern})"
_ENDING = re.compile(rf"(?:(?<!\bvs)[.!]|\?(?!\s{{0,3}}\$?$))(?=\s){_FURTHER}|\n\s*\n{_FURTHER}", re.IGNORECASE)
_PART = re.compile(r"^[\s*#_>-]{0,8}(?:part\s)?\(?([a-h]|[1-9])\)", re.MULTILINE | re.IGNORECASE)


def braced(text: str) -> str:
    r"""The text with all its boxes as \boxed{...}: also \fbox{42}, \framebox{42}, \boxed 42, and the box tokens of GLM."""
    if "box" not in text:
        return text
    text = from_tokens(text)
    if "\\fbox" in text or "\\framebox" in text:
        text = _FRAMED.sub(r"\\boxed{", text)
    return _UNBRACED.sub(r"\\boxed{\1}", text)


def from_tokens(text: str) -> str:
    r"""The text with <|begin_of_box|>42<|end_of_box|> as \boxed{42}."""
    if "_of_box|>" not in text:
        return text
    return text.replace("<|begin_of_box|>", "\\boxed{").replace("<|end_of_box|>", "}")


class Box(NamedTuple):
    r"""start, end: of \boxed{...} in the text.  content: what it holds."""

    start: int
    end: int
    content: str


def boxes(text: str) -> list[Box]:
    """The closed boxes that lie in no other one; none if the last one is cut off, as the final answer is then unknown."""
    found: list[Box] = []
    opened: list[tuple[int, int]] = []
    first = text.find("\\boxed")
    for match in _BRACES.finditer(text, first) if first >= 0 else ():
        sign = match.group()
        if sign == "{" or sign.startswith("\\boxed"):
            opened.append((match.start() if len(sign) > 1 else -1, match.end()))
        elif sign == "}" and opened and (box := opened.pop())[0] >= 0:
            # boxes may be nested: the outer one closes last, and takes the place of those within it
            while found and found[-1].start > box[0]:
                found.pop()
            found.append(Box(box[0], match.end(), text[box[1] : match.start()]))
    return found if found and not any(start >= found[-1].end for start, _ in opened) else []


def inside(box: Box) -> str:
    """The content of a box; a box that holds nothing but a box holds the same answer."""
    content = box.content.strip()
    # one such level occurs, and more are not worth the time
    whole = content.startswith("\\boxed{") and content.endswith("}") and not set("{}") & set(content[7:-1])
    return content[7:-1].strip() if whole else content


def joint(text: str) -> str | None:
    r"""What the last box states, together with the boxes before it from which only a comma, "and" or "or" or a name parts it.

    "$x = \boxed{1}$ or $x = \boxed{-2}$" states "x = 1 or x = -2", and so do boxes that are offered, "1, or perhaps -2", or hold in
    different cases. None if there is no box, or the last one is cut off.
    """
    found = boxes(text)
    if not found:
        return None
    chosen = [found[-1]]
    words: list[str] = []
    for box in reversed(found[:-1]):
        word = _joining(text, box, chosen[0])
        if not word or len(chosen) == MOST:
            break
        chosen.insert(0, box)
        words.insert(0, word)
    contents = [inside(box) for box in chosen]
    # an answer that is only repeated is one answer
    if _same(contents):
        return contents[-1]
    return _joined(contents, [_label(text[max(0, box.start - 40) : box.start]) for box in chosen], words)


def last(text: str) -> str | None:
    """What the last box holds; "6 or 5" where the one before it offers another answer. None if there is no box, or it is cut."""
    found = boxes(text)
    if len(found) < 2:
        return inside(found[0]) if found else None
    one, other = inside(found[-2]), inside(found[-1])
    return other if _same([one, other]) or _joining(text, found[-2], found[-1]) != "or" else f"{one} or {other}"


def _same(contents: list[str]) -> bool:
    return len(set(contents)) == 1 or (len(values := {number(content) for content in contents}) == 1 and None not in values)


def _joining(text: str, one: Box, other: Box) -> str:
    """What joins two boxes to one statement, a comma or "or"; "" if each stands for itself."""
    if other.start - one.end > FARTHEST_OFFERED:
        return ""
    between = _EMPHASIS.sub("", text[one.end : other.start])
    opens = OPENING.match(between)
    if len(between) > FARTHEST and not opens:
        return ""
    plain = _plain(between)
    if match := _JOINT.fullmatch(plain):
        return "or" if (match["word"] or "").lower() == "or" else ","
    # 3:1, or simply 3
    guessed = GUESSING.search(between)
    if not guessed and (_WITHIN.match(between) or (_SIMPLY.search(plain) and other.content in one.content)):
        return ""
    in_cases = _CASE.match(between) and _CASE.match(text[other.end : other.end + 20])
    offered = in_cases or OFFERING.search(between) or _SIGN_OF_OR.search(plain) or ALONE.fullmatch(plain)
    # a word on a line of its own ends nothing
    if not offered or _ENDING.search(between.strip(" \n$*") if opens or len(plain.strip()) <= SHORT else between):
        return ""
    # "or 3 + 3 =" offers, while "if each has 3, they have" leads to the answer
    settled = CORRECTING if opens else _SETTLING
    return "" if not (opens and guessed) and settled.search(_UNSETTLED.sub(" ", _LABEL.sub("", plain))) else "or"


def _joined(contents: list[str], labels: list[str], words: list[str]) -> str:
    named = all(labels) and not any("=" in content for content in contents)
    items = [f"{label} = {content}" for label, content in zip(labels, contents, strict=True)] if named else contents
    return items[0] + "".join(f"{' or ' if word == 'or' else ', '}{item}" for word, item in zip(words, items[1:], strict=True))


def _plain(text: str) -> str:
    return _CLUTTER.sub(lambda match: match[1] or " ", text)


def _label(before: str) -> str:
    match = _LABEL.search(_plain(before))
    return match[1] if match else ""


def by_part(text: str) -> str | None:
    """What the last box of each part states, as "(a) 12 (b) 30", if the lines (a), (b), ... or (1), (2), ... each have a box."""
    marks = list(_PART.finditer(text))
    labels = "".join(mark[1].lower() for mark in marks)
    if len(labels) < 2 or not (labels in "abcdefgh" or labels in "123456789") or labels[0] not in "a1":
        return None
    found, stated = boxes(text), []
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(text)], strict=True):
        own = [box for box in found if mark.end() <= box.start < end]
        if not own:
            return None
        stated.append(f"({mark[1].lower()}) {inside(own[-1])}")
    return " ".join(stated)
