"""Three-way judgements of an answer: A, it is right; B, it is wrong; C, it is no answer (cut off, repeating itself, a refusal)."""

from __future__ import annotations

import re

JUDGMENTS = ("A", "B", "C")
_BOXED = re.compile(r"boxed\{([A-C])\}")
_LETTER = re.compile(r"\b([A-C])\b")


def read_judgment(text: str) -> str | None:
    r"""The judgement in a verifier's text: its last \boxed{A}, else the last letter that stands alone after "Final Judgment:".

    In the order of CompassVerifier's `process_judgment`, which takes any capital letter: it reads CORRECT as C.
    """
    found = _BOXED.findall(text) or _LETTER.findall(text.rpartition("Final Judgment:")[2])
    return found[-1] if found else None
