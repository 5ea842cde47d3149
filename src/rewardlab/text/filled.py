"""Text templates."""

from __future__ import annotations

import re


def filled(template: str, **texts: str) -> str:
    """The template with each {name} replaced by the text of that name; other braces stay as they are.

    In one go, since a text may itself contain a place.
    """
    places = "|".join(rf"\{{{name}\}}" for name in texts)
    return re.sub(places, lambda place: texts[place[0][1:-1]], template) if texts else template
