"""Programs with one line changed by rules: one number by one, or one word or sign for its counterpart."""

from __future__ import annotations

import random
import re

SWAPS = (
    ("<", ">"), ("<=", ">="), ("==", "!="), ("+", "-"), ("*", "/"), ("+=", "-="), ("and", "or"), ("True", "False"), ("min", "max"),
    ("sum", "len"), ("head", "last"), ("even", "odd"), ("sort", "reverse"), ("sorted", "reversed"), ("take", "drop"),
    ("startswith", "endswith"), ("any", "all"), ("break", "continue"), ("upper", "lower"), ("append", "remove"),
)  # fmt: skip
"""Words and signs, each in one pair, and what takes the place of the other."""
_COUNTERPART = {x: y for a, b in SWAPS for x, y in ((a, b), (b, a))}
_PART = re.compile(r"\d+|[A-Za-z_]\w*|[-+*/<>=!]=|[-+*/<>]")


def mutated(line: str, rng: random.Random) -> str | None:
    """The line with one number one more or one less, or one word or sign replaced; None where there is nothing to change."""
    places = [m for m in _PART.finditer(line) if m[0].isdigit() or m[0] in _COUNTERPART]
    if not places:
        return None
    found = rng.choice(places)
    if found[0].isdigit():
        new = str(max(0, int(found[0]) + rng.choice((-1, 1))))
        # nothing is less than 0: one more, then
        new = str(int(found[0]) + 1) if new == found[0] else new
    else:
        new = _COUNTERPART[found[0]]
    return line[: found.start()] + new + line[found.end() :]


def mutant_of(program: str, rng: random.Random, separator: str = "\n") -> tuple[str, int] | None:
    """A program in which one of its lines is mutated, and which line of those that are not blank, from 0; None if none can be."""
    lines = program.split(separator)
    written = [i for i, line in enumerate(lines) if line.strip()]
    rng.shuffle(order := list(range(len(written))))
    for k in order:
        if (new := mutated(lines[written[k]], rng)) is not None:
            return separator.join([*lines[: written[k]], new, *lines[written[k] + 1 :]]), k
    return None
