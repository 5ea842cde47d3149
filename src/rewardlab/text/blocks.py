"""Fenced code blocks of a reply. Takes linear time; never raises."""

from __future__ import annotations

import re

PYTHON = ("python", "python3", "py")
_FENCE_LINE = re.compile(r"\s*([-*+]\s+|[0-9]{1,3}[.)]\s+)?(`{3,}|~{3,})(.*)", re.DOTALL)
"""A fence, which may follow the mark of a list's item."""
_BLOCK = re.compile(r"```([A-Za-z0-9_+-]{0,20})(.*?)(?:```|\Z)", re.DOTALL)


def last_block(text: str, *languages: str) -> str | None:
    """The content of the last ``` block in one of these languages ("" for a block without a language), or, if none is named, in
    any; None if there is none.

    A block that is not closed ends with the text: generation often stops at the closing fence.
    """
    bodies = blocks(text, *languages)
    return bodies[-1] if bodies else None


def blocks(text: str, *languages: str) -> list[str]:
    """The contents of all blocks of these languages, in order; without a language, of all blocks."""
    return [body.strip() for language, body in _BLOCK.findall(text) if not languages or language.lower() in languages]


def program_span(reply: str) -> tuple[int, int] | None:
    """Where the lines of the last block of Python, else of the last block, begin and end; None if there is no block.

    An unclosed block ends with the reply.
    """
    blocks: list[tuple[str, int, int]] = []
    opening, at = "", 0
    for line in reply.splitlines(keepends=True):
        end = at + len(line)
        fence = _FENCE_LINE.match(line)
        # within a block only a bare fence of its kind closes it: a program may print "```python"
        if fence and (not opening or (fence[2].startswith(opening) and not fence[1] and not fence[3].strip())):
            opening = "" if opening else fence[2]
            if opening:
                blocks.append((fence[3].strip().lower(), end, end))
        elif opening:
            blocks[-1] = (*blocks[-1][:2], end)
        at = end
    python = [block for block in blocks if block[0].split(" ")[0] in PYTHON]
    chosen = (python or blocks)[-1:]
    return chosen[0][1:] if chosen else None
