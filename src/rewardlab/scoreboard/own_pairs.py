"""Pairs of a user's own as a benchmark: `rewardlab scoreboard RATER --on pairs --data held_out.jsonl`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.figures import Marks, by_subset
from rewardlab.scoreboard.items import Item, Verdict, said, users
from rewardlab.text.reference import COLUMN, as_text

NAME = "pairs"


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """prompt, a text or messages; chosen and rejected, a text or a list of texts each, or a conversation each whose last message
    is the reply and whose others are the prompt; id, subset, reference, if there are any."""
    chosen, rejected = (_texts(row[name], name) for name in ("chosen", "rejected"))
    asked = _before(row) or row["prompt"]
    if set(chosen) & set(rejected):
        raise ValueError("the same reply is chosen and rejected, so that no rater can be right: leave the row out")
    prompt = users(asked) if isinstance(asked, str) else said(asked)
    # rows of one's own have no id as a rule: what they hold tells them apart
    whole = json.dumps([str(asked), chosen, rejected])
    name = str(row.get("id", hashlib.sha256(whole.encode()).hexdigest()[:12]))
    worth = (1.0,) * len(chosen) + (0.0,) * len(rejected)
    answer = as_text(row.get(COLUMN)) or row.get("answer")
    yield Item(name, prompt, (*chosen, *rejected), worth, str(row.get("subset", "")), answer=answer)


def _before(row: Mapping[str, Any]) -> list[Any]:
    """The messages before the replies, of rows that hold whole conversations; empty for others."""
    chosen, rejected = ([*row[name]][:-1] if _is_conversation(row[name]) else [] for name in ("chosen", "rejected"))
    if chosen != rejected:
        raise ValueError("chosen and rejected are conversations that differ before their last message")
    return chosen


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, Mapping) and {"role", "content"} <= set(m) for m in value)


def _texts(value: Any, column: str) -> tuple[str, ...]:
    if _is_conversation(value):
        value = value[-1]["content"]
    texts = (value,) if isinstance(value, str) else tuple(value)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{column} is a reply, or a list of replies, as text")
    return texts


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """right: the share of the pairs that are ranked right, a tie counting half, no verdict nothing.  best: every chosen reply is
    preferred to every rejected one."""
    known = [verdict.prefers(i, j) for i, j in item.pairs]
    won = [0.0 if x is None else 0.5 if x == 0.5 else float(x > 0.5) for x in known]
    return {"right": sum(won) / len(won), "best": float(all(x == 1.0 for x in won))}


def figures(marks: Marks) -> dict[str, float]:
    """overall: pairs ranked right, and by subset; all right: rows of which every pair is."""
    return {**by_subset(marks, "right"), "all right": marks.mean("best")}


benchmark = Benchmark(
    title="Own pairs", read=read, marks=marks, figures=figures, chance={"overall": 0.5}, own=True,
    example=(
        {"prompt": "Name a planet.", "chosen": "Mars.", "rejected": "The Moon.", "subset": "facts"},
        {"prompt": "Be brief: why is the sky blue?", "chosen": ["Air scatters blue."], "rejected": ["A long story.", "No."]},
    ),
)  # fmt: skip
