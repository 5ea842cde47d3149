"""The beginning of a reply's reasoning, up to a share of its lines, where it ends, and whether two stated answers are the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rewardlab.core import Trajectory

from .answers import after_thinking, final_answer, tidy
from .numbers import number
from .rationale import rationale

OPENED, CLOSED = "<think>", "</think>"


def reasoning_lines(reply: str) -> list[str]:
    """The lines before the answer that say something."""
    return [line for line in rationale(reply).splitlines() if line.strip()]


def begun(reply: str, share: float) -> str:
    """The first share of the reasoning's lines, at least one, to be gone on from; empty where there is no reasoning."""
    lines = reasoning_lines(reply)
    return opening(reply, lines[: max(1, int(len(lines) * share))]) if lines else ""


def opening(reply: str, lines: list[str]) -> str:
    """Lines as the beginning of a reply that thinks where this one does."""
    # where a chat template has opened the thinking, the reply does not open it again
    return (f"{OPENED}\n" if OPENED in reply.rpartition(CLOSED)[0] else "") + "\n".join(lines) + "\n"


def thinks_in_tags(reply: str, prompt: Trajectory, decode: Callable[[np.ndarray], str]) -> bool:
    """Whether a reply thinks between tags: it says one of them, or the prompt as it is read ends with the first.

    prompt: a row that begins with what was read.  decode: the policy's, of ids.
    """
    if CLOSED in reply or OPENED in reply:
        return True
    read = prompt.turns[0].ids if prompt.turns and prompt.turns[0].author is None else np.zeros(0, np.int64)
    return decode(read[-16:]).rstrip().endswith(OPENED)


def closed_thinking(reply: str) -> str:
    """A reply that thinks between tags, with its thinking ended where it was cut off."""
    return reply if CLOSED in reply else f"{reply.rstrip()}\n{CLOSED}"


def stated(reply: str) -> str | None:
    """The answer of a reply, outside of its thinking."""
    return final_answer(after_thinking(reply))


def same_answer(a: str, b: str) -> bool:
    """By value if both are numbers, else as normalised text."""
    x, y = number(a), number(b)
    return x == y if x is not None and y is not None else tidy(a) == tidy(b)
