"""Regular expressions, for processes of `kit/workers.py`: matching may backtrack without end. Imports no rewardlab module."""

from __future__ import annotations

import re


def all_of(pattern: str, text: str) -> bool:
    """Whether a pattern matches the whole text; its dot matches line breaks too."""
    return re.compile(pattern, re.DOTALL).fullmatch(text) is not None
