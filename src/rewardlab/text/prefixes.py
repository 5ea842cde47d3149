"""The beginning of a reply's reasoning, up to a share of its lines, and whether two stated answers are the same."""

from __future__ import annotations

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
    return (f"{OPENED}\n" if CLOSED in reply else "") + "\n".join(lines) + "\n"


def stated(reply: str) -> str | None:
    """The answer of a reply, outside of its thinking."""
    return final_answer(after_thinking(reply))


def same_answer(a: str, b: str) -> bool:
    """By value if both are numbers, else as normalised text."""
    x, y = number(a), number(b)
    return x == y if x is not None and y is not None else tidy(a) == tidy(b)
