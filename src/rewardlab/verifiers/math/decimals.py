"""Decimal commas: 3,75 for 3.75. A comma also separates the items of a list, so it is read so only where no list can be meant."""

from __future__ import annotations

import re

_COMMA = re.compile(r"(?<![0-9.,])([0-9]{1,15}),([0-9]{1,15})(?![0-9]|[.,][0-9])")


def with_points(text: str) -> str:
    """The text with a point for the comma between its only two runs of digits; the text itself if it has others."""
    match = _COMMA.search(text)
    alone = match and not any(sign.isdigit() for sign in text[: match.start()] + text[match.end() :])
    # 1,234 is a number of thousands, and (1,5) a pair
    if match and (set("([{") & set(text[: match.start()]) or (len(match[2]) == 3 and len(match[1]) <= 3 and match[1] != "0")):
        return text
    return f"{text[: match.start()]}{match[1]}.{match[2]}{text[match.end() :]}" if match and alone else text
