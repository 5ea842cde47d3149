"""Endings in which a reply names several options and decides for one, told plainly: I'd go with B over A; not A or C, so B.

What is cut is a pattern as a whole, so that a sentence which says anything else is left to the reading of letters, which is strict.
"""

from __future__ import annotations

import re

from rewardlab.text.boxes import from_tokens
from rewardlab.text.objects import told

TAIL = 500
"""Characters at the end of a reply that are looked at."""
# faces and signs of joy: a thumb that points down, a shrug or a cross says something of the letter
_JOY = re.compile("[\\s\ufe0f😀😃😄😁😊🙂😉😎😇🥳🎉👍👌🙌💯✨🌟⭐🎯🎓🚀💪🏆]{1,20}$")
_LETTER = r"(?-i:[*_(]{0,3}[A-Z][)*_]{0,3})(?![\w'’])"
_LETTERS = rf"{_LETTER}(?:(?:,\s?|,?\s(?:and|or|nor)\s){_LETTER}){{0,8}}"
_PREFERRED = re.compile(
    rf"(?:^|(?<=[.!?:,]\s)|(?<=\n))(?:so\s|thus\s|therefore,?\s)?(?:(?:i|we)(?:['’](?:d|ll)|\s(?:would|will"
    rf"|must))?\s(?:go\swith|choose|pick|prefer|select|take)\s)?"
    rf"(?:option\s)?(?P<chosen>{_LETTER})\s(?:over|instead\sof|to)\s(?:option\s)?{_LETTERS}[.!]?\s{{0,5}}$",
    re.IGNORECASE,
)
"""I'd go with B over A."""
_NONE_OF = re.compile(
    rf"(?:^|(?<=[.!?:]\s)|(?<=\n))(?:it(?:['’]s|\sis)\s)?(?:not|neither)\s{_LETTERS}[.;,]\s{{1,3}}"
    r"(?=(?:so|it|the|thus|hence|therefore)\b)",
    re.IGNORECASE,
)
"""Not A, C or D."""
_ASKED = re.compile(
    r"(?:^|(?<=[.!]\s)|(?<=\n))[^.!?\n]{1,80}\?\s{1,3}(?:no|nope|not\sreally)[.,!]\s{1,3}(?=[A-Z(*])", re.IGNORECASE
)
"""Is it A? No."""
_BEST = re.compile(
    rf"(?:^|(?<=[.!?:]\s)|(?<=\n))(?:both\s)?(?P<named>{_LETTERS})\s(?:could|may|might|are|seem|look"
    rf"|can)\b[^.!?\n,;]{{0,40}},\s?but\s"
    rf"(?P<chosen>{_LETTER})\s(?:is|seems|fits)\s?(?:the\s)?(?:best|better|correct|right)(?:\s(?:answer|choice|option|one"
    rf"|fit))?[.!]?\s{{0,5}}$",
    re.IGNORECASE,
)
"""Both A and B could be right, but B is best."""


def plainly(text: str) -> str:
    """The text with its ending, if it is one of these, as a plain statement of the option."""
    text = _JOY.sub("", told(from_tokens(text)))
    start = max(0, len(text) - TAIL)
    tail = _ASKED.sub("", _NONE_OF.sub("", text[start:]))
    for ending in (_PREFERRED, _BEST):
        if found := ending.search(tail):
            return f"{text[:start]}{tail[: found.start()]}The answer is {found['chosen'].strip('*_')}."
    return text[:start] + tail
