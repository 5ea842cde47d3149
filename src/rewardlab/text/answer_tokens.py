"""The tokens of a reply in which the answer that it states stands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rewardlab.core import Trajectory

from .pieces import tokens_with
from .prefixes import stated


def answer_tokens(trajectory: Trajectory, pieces: Callable[[np.ndarray], list[str]]) -> list[int]:
    """The positions of the tokens in which the answer of the last reply stands; none where it states nothing."""
    answer, ends = _words_of(stated(trajectory.reply) or ""), trajectory.ends
    if not answer or not ends:
        return []
    # the last reply begins after the last position that was read
    read = np.flatnonzero(~trajectory.mask[: ends[-1] + 1])
    first = int(read[-1]) + 1 if len(read) else 0
    return [first + i for i in tokens_with(answer, pieces(trajectory.ids[first : ends[-1] + 1]), last=True)]


def _words_of(answer: str) -> str:
    """An answer without the tags around it and the stop that ends its sentence: they are certain, whatever it is."""
    inside = answer.partition("<answer>")[2].partition("</answer>")[0] if "<answer>" in answer else answer
    return inside.strip().rstrip(".").rstrip()
