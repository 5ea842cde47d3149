"""Openers: the first sentences of replies, which answer nothing, as rows that teach a judge to say no (Zhao et al. 2025).

    "To find the area, we multiply both sides. 4 * 6 = 24. The area is 24."   ->   "To find the area, we multiply both sides."

Learnt judges accept texts such as "Thought process:" as right answers (arXiv:2507.08794). The authors had a model answer 20,000 of
160,000 rows step by step, kept the first sentence of each answer, and labelled it NO; the texts that judges are tried with are not
among them. Here an opener that states an answer, or holds the right one, is left out too: a judge should not learn to refuse it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.text.answers import after_thinking
from rewardlab.text.empty_replies import MASTER_KEYS
from rewardlab.text.replies import accepted, claims
from rewardlab.text.splitters import cut

from .tables import Places, Table
from .values import MISSING, value_of

_LETTER = re.compile(r"[^\W\d_]")
# no space follows these
_UNSPACED = re.compile(r"(?<=[。！？])(?!\s)")


def opener_of(reply: str, answer: Any = None, keys: Collection[str] = tuple(MASTER_KEYS.values())) -> str | None:
    """The first sentence or line of a reply, behind its thinking; None where nothing follows it, and where it states an answer.

    "1." and the like are no sentence of their own.  answer: the right one, or several, none of which the opener may hold.  keys:
    texts that judges are tried with, and so must not learn from.
    """
    said: list[str] = []
    sentences = cut(_UNSPACED.sub("\n", after_thinking(reply)), "sentence")
    while sentences and not _LETTER.search(" ".join(said)):
        said.append(sentences.pop(0))
    first = " ".join(said).strip()
    known = {_plain(key) for key in keys}
    if not sentences or _plain(first) in known or claims(first) or any(holds(first, gold) for gold in accepted(answer)):
        return None
    return first


def holds(text: str, answer: str) -> bool:
    """Whether an answer stands in a text, not within a longer word or number."""
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text, re.IGNORECASE) is not None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def openers_file(
    source: Path | str, out: Path | str, dropped: Path | str | None = None, *, added: float = 0.125, reply_column: str = "reply",
    from_column: str = "", answer_column: str = "answer", label_column: str = "label", seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """All rows of a file, and openers: rows sampled from them whose reply is cut to its first sentence, and whose label says no.

    added: openers for each row; the paper has 1 in 8.  from_column: the text that is cut; empty: the reply itself. An opener comes
    behind its row, and has the column `opener`, which is true. Fewer are added where not enough rows give one.
    """
    if added <= 0:
        raise RewardlabError(f"openers: added is a number above 0, not {added}")
    places = Places("openers", [source], out, dropped)
    table, cut_from = Table.load(source), from_column or reply_column
    table.require(cut_from, reply_column, label_column)
    found = {i: text for i, row in enumerate(table.rows) if (text := _opener_in(row, cut_from, answer_column))}
    if table.rows and not found:
        raise RewardlabError(f"openers: no {cut_from} in {source} begins with a sentence that answers nothing and goes on after it")
    chosen = set(random.Random(seed).sample(sorted(found), min(len(found), round(added * len(table.rows)))))
    rows = []
    for i, row in enumerate(table.rows):
        rows.append(row)
        if i in chosen:
            rows.append({**row, reply_column: found[i], label_column: _no_like(row.get(label_column)), "opener": True})
    return places.finish([table], [], rows, openers=len(chosen), possible=len(found))


def _opener_in(row: Mapping[str, Any], column: str, answer_column: str) -> str | None:
    text, answer = value_of(row, column), value_of(row, answer_column)
    return opener_of(text, None if answer is MISSING else answer) if isinstance(text, str) else None


def _no_like(label: Any) -> Any:
    """No, as the column's other labels are written: a column of a table holds one kind of value."""
    return False if isinstance(label, bool) else type(label)(0) if isinstance(label, int | float) else "no"
