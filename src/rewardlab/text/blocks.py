"""Fenced code blocks of a reply. Takes linear time; never raises."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"```([A-Za-z0-9_+-]{0,20})(.*?)(?:```|\Z)", re.DOTALL)


def last_block(text: str, *languages: str) -> str | None:
    """The content of the last ``` block in one of these languages ("" for a block without a language); None if there is none.

    A block that is not closed ends with the text: generation often stops at the closing fence.
    """
    bodies = blocks(text, *languages)
    return bodies[-1] if bodies else None


def blocks(text: str, *languages: str) -> list[str]:
    """The contents of all such blocks, in order."""
    return [body.strip() for language, body in _BLOCK.findall(text) if language.lower() in languages]
