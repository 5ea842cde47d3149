"""Regular expressions, for worker processes: matching may backtrack without end, and only a process can be stopped.

Imports no rewardlab module, so that a worker starts fast.
"""

from __future__ import annotations

import re


def all_of(pattern: str, text: str) -> bool:
    """Whether a pattern matches the whole text; the dot matches line breaks too."""
    return re.compile(pattern, re.DOTALL).fullmatch(text) is not None
