"""Fenced code blocks of a reply. Takes linear time; never raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from . import strict_json

PYTHON = ("python", "python3", "py")
_FENCE_LINE = re.compile(r"\s*([-*+]\s+|[0-9]{1,3}[.)]\s+)?(`{3,}|~{3,})(.*)", re.DOTALL)
"""A fence, which may follow the mark of a list's item."""
_FENCE_BEHIND = re.compile(r"[^`~\n]{1,200}(`{3,}|~{3,})[ \t]{0,3}(python3?|py)\s*", re.IGNORECASE)
"""A fence that follows text in its line, which says that it opens a program."""
_OF_LINES = re.compile(r"^[ \t]*```([A-Za-z0-9_+-]{0,20})[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_BLOCK = re.compile(r"```([A-Za-z0-9_+-]{0,20})(.*?)(?:```|\Z)", re.DOTALL)


def last_block(text: str, *languages: str) -> str | None:
    """The content of the last ``` block in one of these languages ("" for a block without a language), or, if none is named, in
    any; None if there is none.

    A block that is not closed ends with the text: generation often stops at the closing fence.
    """
    bodies = blocks(text, *languages)
    return bodies[-1] if bodies else None


def json_block(text: str, *languages: str) -> str | None:
    """The last block in one of these languages, as `last_block` finds it; where that is no JSON, the last one that a fence at the
    beginning of a line ends, if it is: a text in JSON may hold fences, but no line break."""
    block = last_block(text, *languages)
    if block is None or _is_json(block):
        return block
    whole = next((body.strip() for language, body in reversed(_OF_LINES.findall(text)) if language.lower() in languages), block)
    return whole if _is_json(whole) else block


def _is_json(text: str) -> bool:
    try:
        strict_json.parse(text)
    except ValueError:
        return False
    return True


def blocks(text: str, *languages: str) -> list[str]:
    """The contents of all blocks of these languages, in order; without a language, of all blocks."""
    return [body.strip() for language, body in _BLOCK.findall(text) if not languages or language.lower() in languages]


def program_of(reply: str, names: Callable[[], Collection[str]] = tuple) -> str:
    """The program of a reply: its last block of Python that defines one of these names, else its last block of Python, else its
    last block, else the whole reply; whatever stands in its thinking. A block within a list is indented as its fence is.

    names: is asked where there are several blocks of Python, of which the last may only show how the program is used.
    """
    reply = _said(reply).removeprefix("\ufeff")
    spans = program_spans(reply)
    if not spans:
        return reply
    last = _outdented(reply, *spans[-1])
    if len(spans) == 1 or not (wanted := "|".join(map(re.escape, names()))):
        return last
    defines = re.compile(rf"^(?:async def|def|class) (?:{wanted})\b|^(?:{wanted})\s*=[^=]", re.MULTILINE)
    programs = (_outdented(reply, *span) for span in reversed(spans))
    return next(filter(defines.search, programs), last)


def _said(reply: str) -> str:
    """A reply without the thinking that it begins with, which a template may have opened; "" if the thinking does not end.

    What stands in tags later on may be text of the program.
    """
    before, closed, after = reply.partition("</think>")
    if before.lstrip().startswith("<think>"):
        return after
    return after if closed and "<think>" not in before else reply


def _outdented(reply: str, start: int, end: int) -> str:
    fence = reply[reply.rfind("\n", 0, start - 1) + 1 : start]
    # a fence behind text says nothing of how far its lines are indented
    own = _FENCE_LINE.match(fence)
    indent = own.start(2) if own else 0
    lines = (line[min(indent, len(line) - len(line.lstrip())) :] for line in reply[start:end].splitlines())
    return "\n".join(lines) + "\n"


def program_span(reply: str) -> tuple[int, int] | None:
    """Where the lines of the last block of Python, else of the last block, begin and end; None if there is no block."""
    return next(reversed(program_spans(reply)), None)


def program_spans(reply: str) -> list[tuple[int, int]]:
    """Where the lines of each block of Python begin and end; if there is none, those of the last block.

    An unclosed block ends with the reply.
    """
    blocks: list[tuple[str, int, int]] = []
    opening, at = "", 0
    for line in reply.splitlines(keepends=True):
        end = at + len(line)
        fence = _FENCE_LINE.match(line)
        behind = None if opening or fence else _FENCE_BEHIND.fullmatch(line)
        # within a block only a bare fence of its kind closes it: a program may print "```python"
        if fence and (not opening or (fence[2].startswith(opening) and not fence[1] and not fence[3].strip())):
            opening = "" if opening else fence[2]
            if opening:
                blocks.append((fence[3].strip().lower(), end, end))
        elif behind:
            opening = behind[1]
            blocks.append((behind[2].lower(), end, end))
        elif opening:
            blocks[-1] = (*blocks[-1][:2], end)
        at = end
    python = [block for block in blocks if block[0].split(" ")[0] in PYTHON]
    return [(start, end) for _, start, end in python or blocks[-1:]]
