r"""Several answers one below the other: $$x=2$$, and on the next line $$x=3$$. Linear time; nothing raises."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction

from .numbers import number

TAIL = 600
"""Characters at the end of a reply that are looked at."""
_WORD = r"(?:and|or|either|also|oder|und|ou|et|o|y|e|или|и|或|和|または|또는)"
_NUMBER = r"[-−+]?\s?(?:[0-9][0-9.,]{0,20}(?:\s?/\s?[0-9]{1,9})?|\\[dt]?frac\s?\{?[0-9]{1,9}\}?\s?\{?[0-9]{1,9}\}?)"
_LINE = re.compile(
    rf"\s{{0,6}}(?:[-•*>]\s|\(?(?:[1-9]|[a-h]|i{{1,3}})[.)]\s)?\s{{0,3}}(?:{_WORD}\b:?\s{{1,3}})?[*_]{{0,2}}(?P<display>\$\$|\\\[|\\\(|\$)?\s{{0,3}}"
    r"(?:(?P<name>[A-Za-z](?:_\{?[0-9A-Za-z]\}?)?)\s?=\s?)?"
    rf"(?P<value>{_NUMBER})\s{{0,3}}(?:\$\$|\\\]|\\\)|\$)?[*_]{{0,2}}\s?[,;.]?\s?(?:{_WORD}\b)?[,:]?\s{{0,3}}(?:\$\$|\\\]|\\\))?\s{{0,3}}",
    re.IGNORECASE,
)
_ONLY_WORD = re.compile(rf"[\s*_(]{{0,4}}{_WORD}[\s*_),:]{{0,4}}", re.IGNORECASE)
_DISPLAY = re.compile(r"(\$\$|\\\[)\s*\n\s*([^\n]{1,60}?)\s*\n\s*(?=\$\$|\\\])")


class Stack(tuple[tuple[str, str], ...]):
    """Names, which may be empty, and values, from top to bottom."""

    def one_name(self) -> bool:
        return len({name for name, _ in self}) == 1

    def told(self) -> str:
        """The answers in one line: x = 2, 3 of one name, else x = 2, y = 3."""
        if self.one_name():
            name = self[0][0]
            return f"{name} = " * bool(name) + ", ".join(value for _, value in self)
        return ", ".join(f"{name} = {value}" for name, value in self)


def stack(text: str, whole: bool = False) -> Stack | None:
    """The several answers with which a text ends, each a name and a number on a line of its own, or two numbers in displays.

    None if there is but one, or if each is the same number, perhaps rounded, as the one above it under the same name.
    whole: the text must be nothing else.
    """
    # most replies end in a sentence, and finding that out takes less time than the patterns
    tail = text[-TAIL:].rstrip()
    last = tail[tail.rfind("\n") + 1 :]
    if "\n" not in tail or len(last) > 60 or not (_LINE.fullmatch(last) or last.strip() in ("$$", "\\]")):
        return None
    if last.strip() in ("$$", "\\]"):
        tail = _DISPLAY.sub(r"\1\2", tail)
    found: list[re.Match[str]] = []
    alone = len(text) <= TAIL
    for line in reversed(tail.split("\n")):
        if not line.strip() or (found and _ONLY_WORD.fullmatch(line)):
            continue
        match = _LINE.fullmatch(line)
        if not match:
            alone = False
            break
        found.insert(0, match)
    items = Stack((match["name"] or "", match["value"].strip(" ,.")) for match in found)
    if len(items) < 2 or len({bool(name) for name, _ in items}) > 1 or (whole and not alone):
        return None
    if not items[0][0] and not alone and not all(match["display"] in ("$$", "\\[") for match in found):
        return None
    return None if items.one_name() and _derived([number(value) for _, value in items]) else items


def _derived(values: list[Fraction | None]) -> bool:
    """Whether each number is the one before it, or that one rounded; also if one cannot be read."""
    known = [value for value in values if value is not None]
    return len(known) < len(values) or all(
        one == other or any(round(one, places) == other for places in range(7)) for one, other in itertools.pairwise(known)
    )
