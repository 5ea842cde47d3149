"""Rows of scored replies as rows of pairs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

from .drops import Drop, Fates
from .files import Row
from .pairing import Pair, pairs
from .picture_rows import folder_of, shown_by
from .pictures import named
from .rated_rows import REPLIES, SCORES, objects
from .tables import Table
from .values import list_of, number_of, text_of, value_of


def paired(
    table: Table, choose: str, gap: float, prompt: str, reply: str | None, score: str | None, seed: int
) -> tuple[list[Row], Fates]:  # fmt: skip
    """The rows of pairs, and for each row of the table why it is in no pair. Columns and settings as in `tools.pairs_file`."""
    reply = _column(table, reply, REPLIES, "replies")
    # objects hold both
    whole = any(objects(value_of(row, reply)) for row in table.rows) and score is None
    score = reply if whole else _column(table, score, SCORES, "scores")
    groups: dict[str, list[int]] = defaultdict(list)
    folder = folder_of(table.source)
    for i, row in enumerate(table.rows):
        # lists make a group of their own; single replies go together by their prompt
        groups[f"row {i}" if list_of(value_of(row, reply)) is not None else _key(row, prompt, folder)].append(i)
    rows: list[Row] = []
    fates: Fates = [None] * len(table.rows)
    for key, members in groups.items():
        try:
            replies, scores, whose = _scored([(i, table.rows[i]) for i in members], reply, score)
        except ValueError as e:
            fates[members[0]] = Drop("no scores", str(e))
            continue
        found = pairs(replies, scores, choose, gap, f"{seed} {key}")
        shared = _shared([table.rows[i] for i in members], (reply, score))
        rows += [_row(shared, pair) for pair in found]
        used = {text for pair in found for text in (pair.chosen, pair.rejected)}
        in_pair = {i for text, i in zip(replies, whose, strict=True) if text in used}
        for i in members:
            fates[i] = None if i in in_pair else _why(replies, scores, gap, bool(found))
    return rows, fates


def _column(table: Table, given: str | None, known: Sequence[str], what: str) -> str:
    if given is not None:
        table.require(given)
        return given
    found = next((name for name in known if table.has(name)), None)
    if found is None and table.rows:
        names = dict.fromkeys(name for row in table.rows for name in row)
        flag = {"replies": "--reply-column", "scores": "--score-column"}[what]
        raise RewardlabError(f"{table.source} has no column of {what}; name it by {flag}. The columns are: {', '.join(names)}")
    return found or known[0]


def _key(row: Row, prompt: str, folder: Path) -> str:
    """What rows with the same prompt have in common: its text, and the pictures that it shows."""
    return f"prompt {json.dumps(value_of(row, prompt), sort_keys=True, default=str)}{named(shown_by(row, prompt, folder))}"


def _scored(rows: Sequence[tuple[int, Row]], reply: str, score: str) -> tuple[list[str], list[float | None], list[int]]:
    """All replies to a prompt, their scores, and the row of each. Raises ValueError where they cannot belong together."""
    replies: list[str] = []
    scores: list[float | None] = []
    whose: list[int] = []
    for i, row in rows:
        texts, numbers = objects(value_of(row, reply)) or (list_of(value_of(row, reply)), list_of(value_of(row, score)))
        if texts is None:
            texts, numbers = [value_of(row, reply)], [value_of(row, score)]
        if numbers is None or len(texts) != len(numbers):
            raise ValueError(f"{len(texts)} replies in {reply}, but {'no list' if numbers is None else len(numbers)} in {score}")
        replies += map(text_of, texts)
        scores += map(number_of, numbers)
        whose += [i] * len(texts)
    return replies, scores, whose


def _shared(rows: Sequence[Row], without: Sequence[str]) -> Row:
    """The columns in which all rows of a prompt agree."""
    one = rows[0]
    return {k: v for k, v in one.items() if k not in without and all(k in row and row[k] == v for row in rows[1:])}


def _row(shared: Row, pair: Pair) -> Row:
    numbers: dict[str, Any] = {"chosen_score": pair.chosen_score, "rejected_score": pair.rejected_score, "gap": pair.gap}
    return {**shared, "chosen": pair.chosen, "rejected": pair.rejected, **numbers}


def _why(replies: Sequence[str], scores: Sequence[float | None], gap: float, others: bool) -> Drop:
    scored = {text: score for text, score in zip(replies, scores, strict=True) if score is not None}
    if others:
        return Drop("not chosen", "other replies to its prompt are in the pairs")
    if len(scored) < 2:
        return Drop("too few replies", f"{len(scored)} different replies with a score; a pair needs two")
    widest = max(scored.values()) - min(scored.values())
    return Drop("no gap", f"the scores of its replies differ by {widest:g} at most" + (f", less than {gap:g}" if gap else ""))
