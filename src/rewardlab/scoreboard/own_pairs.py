"""Pairs of a user's own as a benchmark: `rewardlab scoreboard RATER --on pairs --data held_out.jsonl`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rewardlab.core import Message
from rewardlab.data.conversations import decoded, is_conversation, text_in
from rewardlab.data.whole_pairs import SIDES, WHOLE, Parted, Told, parted, turns_of
from rewardlab.errors import RewardlabError
from rewardlab.scoreboard.benchmark import Benchmark, Counted
from rewardlab.scoreboard.figures import Marks, by_subset
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.text.reference import COLUMN, as_text
from rewardlab.util.progress import console

NAME = "pairs"


def read(row: Mapping[str, Any], file: str, told: Told | None = None) -> Iterator[Item]:
    """prompt, a text or messages; chosen and rejected, a text or a list of texts each, or a conversation each that begins with the
    prompt (`data/whole_pairs.py`); id, subset, reference, if there are any. Nothing, where two such differ in several turns.

    told: is given the pairs that hold their prompts."""
    if lacking := [name for name in SIDES if name not in row]:
        names, has = " and no column ".join(map(repr, lacking)), ", ".join(row) or "none"
        raise ValueError(f"no column {names}: this row has {has}. A pair has the columns prompt, chosen and rejected: rename yours")
    pair = _parted(row)
    if pair and told is not None:
        told.add(pair)
    if pair and pair.several:
        return
    chosen, rejected = (_texts(row, name) if pair is None else (getattr(pair, name)[0][1],) for name in SIDES)
    if pair is None and "prompt" not in row:
        raise ValueError(f"no column 'prompt' among {', '.join(row)}; {WHOLE}")
    asked = row["prompt"] if pair is None else pair.whole["prompt"]
    if set(chosen) & set(rejected):
        raise ValueError("the same reply is chosen and rejected, so that no rater can be right: leave the row out")
    messages = turns_of("prompt", decoded(asked), "its prompt") if isinstance(decoded(asked), list) else [("user", str(asked))]
    # rows of one's own have no id as a rule: what they hold tells them apart
    whole = json.dumps([str(asked), chosen, rejected])
    name = str(row.get("id", hashlib.sha256(whole.encode()).hexdigest()[:12]))
    worth = (1.0,) * len(chosen) + (0.0,) * len(rejected)
    answer = as_text(row.get(COLUMN)) or row.get("answer")
    prompt = tuple(Message(role, text) for role, text in messages or ())
    yield Item(name, prompt, (*chosen, *rejected), worth, str(row.get("subset", "")), answer=answer)


def _parted(row: Mapping[str, Any]) -> Parted | None:
    """The parts of a pair of whole conversations, which hold the prompt whatever stands in a column of it; None for other rows."""
    sides = {name: decoded(row[name]) for name in SIDES}
    whole = all(is_conversation(value) and len(value) > 1 for value in sides.values())
    try:
        return parted(sides if whole else row, "")
    except RewardlabError as problem:
        # its place is said by whoever reads the file
        raise ValueError(str(problem).lstrip(":, ")) from None


def _texts(row: Mapping[str, Any], column: str) -> tuple[str, ...]:
    value = decoded(row[column])
    if is_conversation(value):
        value = text_in(value[-1])
    texts = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list | tuple) else ()
    if not texts or not all(isinstance(text, str) for text in texts):
        said = "null" if row[column] is None else f"{row[column]!r:.60}"
        raise ValueError(f"{column} is a reply, or a list of replies, as text, and not {said}")
    return texts


class OwnPairs(Benchmark):
    """The benchmark, which tells what it read of pairs that hold their prompts."""

    def counted(self, source: str | Path | None = None) -> Counted:
        """As of any benchmark; pairs that differ in several turns are left out."""
        told = Told()
        try:
            counted = Benchmark.counted(replace(self, read=partial(read, told=told)), source)
            if empty := [item.place for item in counted.items if not all(map(str.strip, item.replies))]:
                rows = f"{len(empty):,} rows have" if len(empty) > 1 else "1 row has"
                text = f"{rows} an empty reply (first {empty[0]}): it is asked about as any other; leave it out if it is a mistake"
                console.print(text, markup=False, highlight=False, soft_wrap=True)
            return counted
        finally:
            told.tell(", and are left out (rewardlab eval MODEL --task FILE reads them)")


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """right: the share of the pairs that are ranked right, a tie counting half, no verdict nothing.  best: every chosen reply is
    preferred to every rejected one."""
    known = [verdict.prefers(i, j) for i, j in item.pairs]
    won = [0.0 if x is None else 0.5 if x == 0.5 else float(x > 0.5) for x in known]
    return {"right": sum(won) / len(won), "best": float(all(x == 1.0 for x in won))}


def figures(marks: Marks) -> dict[str, float]:
    """overall: pairs ranked right, and by subset; all right: rows of which every pair is."""
    return {**by_subset(marks, "right"), "all right": marks.mean("best")}


benchmark = OwnPairs(
    title="Own pairs", read=read, marks=marks, figures=figures, chance={"overall": 0.5}, own=True,
    example=(
        {"prompt": "Name a planet.", "chosen": "Mars.", "rejected": "The Moon.", "subset": "facts"},
        {"prompt": "Be brief: why is the sky blue?", "chosen": ["Air scatters blue."], "rejected": ["A long story.", "No."]},
    ),
)  # fmt: skip
