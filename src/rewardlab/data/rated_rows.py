"""Rows of rated replies that are no pairs: what they are, and what reads them.

a reply with ratings by attribute      prompt, response, helpfulness, correctness ...     (HelpSteer)
lists of replies and their scores      prompt, replies, scores;   or objects with both    (UltraFeedback)
a reply with its score                 prompt, reply, score
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from .values import is_missing, list_of, number_of

REPLIES = ("replies", "responses", "response", "reply", "completion", "completions")
SCORES = ("scores", "score", "reward", "correct", "ratings", "rating")
"""Columns of replies and their scores, looked for in this order."""
TEXTS = ("response", "reply", "completion", "content", "text")
NUMBERS = ("overall_score", "score", "rating", "reward")
"""The same within an object, where a list holds one for each reply; UltraFeedback calls them `response` and `overall_score`."""
ATTRIBUTES = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")
"""HelpSteer's ratings of a reply, from 0 to 4."""
LEARNT = "solution"
"""Where the reader of problems puts the reply of a column `completion`."""


def with_reply(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of HelpSteer's form with its `response` as `reply`, too, where it has no column of that name."""
    rated = sum(number_of(row.get(name)) is not None for name in ATTRIBUTES) > 1
    return {**row, **({"reply": row["response"]} if rated and "reply" not in row and isinstance(row.get("response"), str) else {})}


def objects(value: Any) -> tuple[list[Any], list[Any]] | None:
    """The texts and scores of a list of objects, one a reply; None where it is none."""
    found = list_of(value)
    if not found or not all(isinstance(one, Mapping) for one in found):
        return None
    text, score = (next((name for name in names if any(name in one for one in found)), "") for names in (TEXTS, NUMBERS))
    return ([one.get(text) for one in found], [one.get(score) for one in found]) if text and score else None


def read_by(row: Mapping[str, Any], file: str, prompt: str | None = None) -> str:
    """What reads such a row, in a sentence with the command; "" for rows of another kind.  file: that the row is of.  prompt: the
    column of its prompt, where that has another name."""
    source, asked = shlex.quote(file), f" --prompt-column {shlex.quote(prompt)}" if prompt else ""
    made = f"rewardlab data pairs {source} --out pairs.jsonl{asked}"
    if (lists := _lists(row)) is not None:
        return f"these are lists of scored replies; pairs of them: {made}{_flags(*lists)}"
    reply = next((name for name in (*REPLIES, LEARNT) if isinstance(row.get(name), str) and not is_missing(row[name])), "")
    numbers = [name for name, value in row.items() if number_of(value) is not None and name != "answer"]
    if not reply or not numbers:
        return ""
    by = _first((*SCORES, "label", *ATTRIBUTES), numbers)[0]
    pairs = f"{made}{_flags('completion' if reply == LEARNT else reply, by)}"
    rated = [name for name in ATTRIBUTES if name in numbers]
    if len(rated) < 2:
        return f"these are single replies with a score; pairs of those to equal prompts: {pairs}"
    named = "" if len(rated) == len(ATTRIBUTES) else f" --attributes {','.join(f'{name}=1' for name in rated)}"
    return (
        f"these are replies rated by attribute: rewardlab train attribute_regression --task {source}{asked}{named} learns from "
        f"them; pairs by {by}: {pairs}"
    )


def _lists(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """The columns of texts and of as many numbers; of objects, which hold both, the one column twice."""
    lists = {name: found for name, value in row.items() if (found := list_of(value))}
    for reply in _first(REPLIES, list(lists)):
        if objects(lists[reply]):
            return reply, reply
        alike = [name for name, found in lists.items() if name != reply and len(found) == len(lists[reply])]
        numbers = [name for name in alike if any(number_of(x) is not None for x in lists[name])]
        if numbers and all(isinstance(x, str) for x in lists[reply]):
            return reply, _first(SCORES, numbers)[0]
    return None


def _first(known: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names, those that are known first, in their order."""
    return sorted(names, key=lambda name: known.index(name) if name in known else len(known))


def _flags(reply: str, score: str) -> str:
    """How the columns are named to `data pairs`, which looks for some by itself."""
    replies = "" if reply in REPLIES else f" --reply-column {shlex.quote(reply)}"
    return replies if score in (reply, *SCORES) else f"{replies} --score-column {shlex.quote(score)}"
