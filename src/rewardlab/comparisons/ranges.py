"""The range of a measured number, by its name: no interval that is shown leaves it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

COUNTS = {
    "length", "tokens", "tokens_per_answer", "entropy", "kl", "seconds", "steps", "updates", "drift", "grad_norm", "turns",
}  # fmt: skip
"""Numbers of at least 0 that may exceed 1."""
ANY = {"reward", "return"}
"""Numbers without a range: that all are in 0 .. 1 does not make them shares."""


def possible(name: str, values: Sequence[float]) -> tuple[float, float]:
    """The range of a number, which no interval leaves: 0 .. 1 for a share, 0 .. infinity for a count or a length.

    By its name; where that says nothing, a number whose values are all in 0 .. 1 is a share.
    """
    everywhere = (-math.inf, math.inf)
    if not values or ANY & set(re.split(r"[./]", name)) or min(values) < 0:
        return everywhere
    if is_count(name):
        return 0.0, math.inf
    return (0.0, 1.0) if max(values) <= 1 else everywhere


def is_count(name: str) -> bool:
    """Whether a number is a count or a length by its name, of which more is not better by itself."""
    last = re.split(r"[./]", name)[-1].partition("@")[0]
    return last in COUNTS or last.endswith(("_length", "_tokens"))
