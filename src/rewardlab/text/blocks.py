"""Fenced blocks of a reply. Linear in its length; nothing raises."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"```([A-Za-z0-9_+-]{0,20})(.*?)(?:```|\Z)", re.DOTALL)


def last_block(text: str, *languages: str) -> str | None:
    """What stands in the last ```-block of one of these languages ("" for none); None without such a block.

    A block that is not closed ends with the text: a reply may stop at the fence.
    """
    found = [body for language, body in _BLOCK.findall(text) if language.lower() in languages]
    return found[-1].strip() if found else None
