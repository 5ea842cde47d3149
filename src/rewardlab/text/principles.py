"""Principles in a prompt: what a reply is judged by, in words, as a reward model learns to read it and reads it later."""

from __future__ import annotations

from collections.abc import Sequence

HEADING = "A good reply is judged by this:"


def with_principles(question: str, principles: Sequence[str]) -> str:
    """The question with these principles after it, one a line; without any, the question alone."""
    return "\n".join([question, "", HEADING, *(f"- {text}" for text in principles)]) if principles else question
