"""Texts of options, and where they stand in other texts."""

from __future__ import annotations

import re


def key(text: str) -> str:
    """A normal form of an option's text: equal keys mean equal options."""
    return " ".join(text.casefold().split()).strip(" *_`$\"'“”").rstrip(".!")


def find_option(option: str, text: str) -> re.Match[str] | None:
    """The first match of an option's text in another text, not as part of a longer word or number."""
    pattern = rf"(?<![\w.+−-]){re.escape(option.strip())}(?![\w%]|[.,][0-9])"
    return re.search(pattern, text, re.IGNORECASE) if option.strip() else None


def stands_in(option: str, text: str) -> bool:
    return find_option(option, text) is not None


def without(text: str, option: str) -> str:
    match = find_option(option, text)
    return text[: match.start()] + " " + text[match.end() :] if match else text
