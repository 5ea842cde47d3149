"""Which of some known names a line of a reply names, as models write lists and sentences.

B                                1. **B**                               - TP53 (a tumour suppressor)
Next I add B, joined to A.       B, C and D                             `EGFR`: high in this sample
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from .answers import after_thinking

_LIST_MARK = re.compile(r"^\s*(?:[-*+•]|\(?\d{1,3}[.):])\s+")
_BETWEEN = re.compile(r"\s*(?:,|;|->|→|\band\b|&)\s*|\s+")
_AROUND = " \t*_`'\"\u201c\u201d\u2018\u2019()[]{}.,:;"
_WORDS = {"A", "I", "a", "i"}
"""Names that are words of English too: within a sentence they name something only where they are marked."""


def bare(line: str) -> str:
    """A line without the mark of a list, emphasis, quotes and what ends it."""
    return _LIST_MARK.sub("", line).strip(_AROUND)


def names_in(line: str, known: Collection[str]) -> tuple[list[str], bool]:
    """The known names in a line, each once, in their order; and whether the line is a list of names and nothing else."""
    whole = bare(line)
    if line.strip() in known or whole in known:
        return [line.strip() if line.strip() in known else whole], True
    parts = [part.strip(_AROUND) for part in _BETWEEN.split(_LIST_MARK.sub("", line)) if part and part.strip(_AROUND)]
    if parts and all(part in known for part in parts):
        return list(dict.fromkeys(parts)), True
    return list(dict.fromkeys(_in_sentence(line, known))), False


def _in_sentence(line: str, known: Collection[str]) -> Iterator[str]:
    # long names first, so that "IL-2 receptor" is not read as "IL-2"
    names = sorted((name for name in known if name.strip()), key=len, reverse=True)
    if not names:
        return
    for found in re.finditer(rf"(?<![\w-])(?:{'|'.join(map(re.escape, names))})(?![\w-])", line):
        marked = line[: found.start()][-1:] in set("*`'\"_") and line[found.end() :][:1] in set("*`'\"_")
        if marked or found.group() not in _WORDS:
            yield found.group()


def added(line: str, known: Collection[str], have: Collection[str]) -> list[str]:
    """The names that a line adds to those one has: all of a list; of a sentence the first that is new, or else the first."""
    names, alone = names_in(line, known)
    if alone:
        return names
    return ([name for name in names if name not in have] or names)[:1]


def visible(lines: list[str]) -> list[str]:
    """Lines of a reply in their order, blank where it is thinking."""
    text = "\n".join(lines)
    after = after_thinking(text)
    shown = after.count("\n") + 1 if after else 0
    kept = lines[len(lines) - shown :] if shown else []
    if kept and after != text:
        kept = [after.split("\n", 1)[0], *kept[1:]]
    return [""] * (len(lines) - len(kept)) + kept
