"""Spurious cues of a reply that may correlate with quality: length, style, and the order of presentation."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .arithmetic import check
from .pairs import Reply

PHRASE = "Let us work it out."
_STEP = re.compile(r"(\d+)([-+*])(\d+)=(\d+)")


@dataclass(frozen=True)
class Cues:
    """For each cue the share of pairs in which the better reply has it, and else the worse one; None: neither has it.

    longer: lines that only check each step.  style: a phrase at the beginning.  first: shown before the other.
    """

    longer: float | None = None
    style: float | None = None
    first: float | None = None

    def balanced(self) -> Cues:
        """The same cues, each in half of the pairs on the better reply: they say nothing about quality."""
        return Cues(*(None if share is None else 0.5 for share in (self.longer, self.style, self.first)))

    def put_on(self, better: Reply, worse: Reply, rng: random.Random) -> tuple[Reply, Reply, bool | None]:
        """The two replies with their cues, and whether the better one is shown first (None: that is no cue)."""
        for share, mark in ((self.longer, with_checks), (self.style, with_phrase)):
            if share is not None:
                better, worse = _marked(better, worse, mark, rng.random() < share)
        return better, worse, None if self.first is None else rng.random() < self.first


def with_checks(text: str) -> str:
    """A solution with a true line that adds nothing after each of its steps."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        if match := _STEP.fullmatch(line):
            left, sign, operand, result = match.groups()
            lines.append(check(int(left), sign, int(operand), int(result)))
    return "\n".join(lines)


def with_phrase(text: str) -> str:
    """A solution that opens with a phrase."""
    return f"{PHRASE}\n{text}"


def _marked(better: Reply, worse: Reply, mark: Callable[[str], str], on_better: bool) -> tuple[Reply, Reply]:
    if on_better:
        return replace(better, text=mark(better.text)), worse
    return better, replace(worse, text=mark(worse.text))
