"""Prompts whose parts stand in several columns: Alpaca's instruction and input, the earlier turns of LLaMA-Factory's rows, and a
system message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.core import Message, Problem
from rewardlab.data.picture_rows import NO_COLUMN
from rewardlab.data.values import is_missing
from rewardlab.errors import RewardlabError, unknown
from rewardlab.util.progress import console

from .row_columns import ALPACA, SYSTEM, Columns, has


def continued(row: Mapping[str, Any], columns: Columns, prompt: Any) -> Any:
    """The prompt; an instruction with its input after it, as LLaMA-Factory joins them."""
    more = row.get("input") if columns.prompt == ALPACA and "input" not in (columns.answer, columns.completion) else None
    return f"{prompt}\n{more}" if isinstance(prompt, str) and isinstance(more, str) and more.strip() else prompt


def first_turns(row: Mapping[str, Any], columns: Columns, place: str) -> list[Message]:
    """The turns before an instruction: pairs of what the user said and the reply."""
    turns = row.get("history") if columns.prompt == ALPACA else None
    if is_missing(turns) or not turns:
        return []
    if not isinstance(turns, list) or not all(isinstance(t, list | tuple) and list(map(type, t)) == [str, str] for t in turns):
        raise RewardlabError(f"{place}: history is a list of pairs of texts, [question, reply], not {str(turns)[:80]!r}")
    return [Message(role, text) for pair in turns for role, text in zip(("user", "assistant"), pair, strict=True)]


def tell_read(columns: Columns, problems: Sequence[Problem]) -> None:
    """Say in how many prompts a column that nobody named was read. Raises RewardlabError where one that is named is in no row."""
    named = columns.system_column
    if named not in (None, NO_COLUMN) and columns.system is None and not any(has(p.meta, str(named)) for p in problems):
        known = dict.fromkeys(name for p in problems for name in p.meta)
        raise unknown("column of system messages", str(named), known)
    begun = [p for p in problems if p.prompt[0].role == "system"]
    for name in SYSTEM if columns.system is None and columns.system_column is None else ():
        if n := sum(p.meta.get(name) == p.prompt[0].text for p in begun):
            _say(f"the column {name!r} as the system message of {n:,} of {len(problems):,} prompts (--system-column none: of none)")
    more = [(p.prompt[-1].text, p.meta["input"]) for p in problems if isinstance(p.meta.get("input"), str) and p.meta["input"]]
    if n := sum(text.endswith(f"\n{of}") for text, of in more):
        _say(f"the column 'input' after the instruction in {n:,} of {len(problems):,} prompts")


def _say(text: str) -> None:
    console.print(f"read: {text}", markup=False, highlight=False, soft_wrap=True)
