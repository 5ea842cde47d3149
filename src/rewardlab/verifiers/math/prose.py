"""Whether the last sentence of a reply in prose concludes with an answer in words: Navin earns the most; it is an ellipse."""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z*\\$(])|\n+")
_LEAD = r"(?:^|,\s|\b(?:so|thus|hence|therefore|that)\s)(?:(?:the|a|an)\s)?"
_AFTER = (
    r"(?=\s(?!and\b|or\b|nor\b|not\b|never\b|does\s?n|did\s?n|is\s?n|was\s?n|cannot\b|can't\b|also\b)[a-z])"
    r"(?!\s[a-z]{1,9}\s(?:not|never)\b)"
)
_BEFORE = (
    r"(?<!not )\b(?:is|are|was|were|be|equals|means|called|forms|represents|describes)\s(?:now\s)?"
    r"(?:(?:facing|achieved\sby|held\sby)\s)?"
    r"(?:(?:a|an|the|due)\s)?"
)
_MARKUP = re.compile(r"[*_`$]|\\(?:text|mathrm|textbf)\s?\{|\\[()\[\]]|[{}]")
LONGEST = 60
"""Characters of the longest answer that is looked for."""


def concludes(reply: str, answer: str) -> bool:
    """Whether the last sentence has the answer as its subject, or ends on it as what something is said to be.

    "Navin or Luka earns the most" and "it is not an ellipse" conclude nothing, nor does a name that is only mentioned.
    """
    plain = " ".join(_MARKUP.sub(" ", answer).split())
    if not plain or len(plain) > LONGEST or not any(sign.isalpha() for sign in plain):
        return False
    sentences = [part for part in _SENTENCE.split(reply[-2000:].strip()) if any(sign.isalpha() for sign in part)]
    if not sentences:
        return False
    last = " ".join(_MARKUP.sub(" ", sentences[-1]).split())
    wanted = re.escape(plain)
    subject = re.search(f"{_LEAD}{wanted}{_AFTER}", last, re.IGNORECASE)
    said = re.search(rf"{_BEFORE}{wanted}(?:\W*$|\s?,?\s(?:with|at|since|because|as|who|which)\s)", last, re.IGNORECASE)
    return bool(subject or said) and not last.endswith("?")
