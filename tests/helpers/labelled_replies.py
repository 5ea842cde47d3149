"""Whole replies as models write them, labelled right or wrong for a gold answer, in classes of what makes them hard to read.

They are in labelled_replies.jsonl, one a line, written by hand before the verifier was changed for them; about half are wrong,
mostly near misses. held_out: written when the work on the others was done, and measured before anything else was changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple


class Labelled(NamedTuple):
    kind: str
    response: str
    answer: str
    correct: bool
    held_out: bool


def replies() -> list[Labelled]:
    lines = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    columns = ("class", "response", "answer", "correct", "held_out")
    return [Labelled(*(row[name] for name in columns)) for row in map(json.loads, lines)]
