"""Judgements of an answer sentence by sentence: whether each is faithful to the documents, a reason, and whether it is correct."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.core import Problem
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import UNREAD, label_of
from rewardlab.judges.forms import Form
from rewardlab.text.filled import filled

LABELS = "labels"
"""The column of a question to a judge with (faithful, correct) of each sentence that it shows; faithful may be None."""
HOW = "`sentences` is a list of objects with `text`, `correct` (yes or no), and, where they are known, `faithful` and `reason`"
Label = tuple[bool | None, bool]


class Sentence(NamedTuple):
    """faithful: to the documents; None where that is not known.  reason: why it is correct or not, given the documents."""

    text: str
    faithful: bool | None
    correct: bool
    reason: str


def sentences_of(problem: Problem) -> list[Sentence]:
    """The labelled sentences of a row. Raises RewardlabError for a row without them."""
    found = list_of(problem.meta.get("sentences"))
    if not found or not all(isinstance(x, Mapping) and x.get("text") and x.get("correct") is not None for x in found):
        raise RewardlabError(f"problem {problem.question[:60]!r} has no sentences to judge: {HOW}")
    return [_sentence(x, problem) for x in found]


def _sentence(row: Mapping[str, Any], problem: Problem) -> Sentence:
    faithful = row.get("faithful")
    known = None if faithful is None else label_of(faithful, problem) > 0.5
    return Sentence(str(row["text"]), known, label_of(row["correct"], problem) > 0.5, str(row.get("reason") or ""))


def to_judge(problem: Problem, texts: Sequence[str], form: Form, labels: Sequence[Label] = ()) -> Problem:
    """The question to a judge about these sentences, which stand in the place {reply}, numbered from 1."""
    asked = form.asked(problem, ["\n".join(f"{i}. {text}" for i, text in enumerate(texts, 1))])
    return replace(asked, meta={**problem.meta, LABELS: [list(label) for label in labels]})


def read(judgement: str, pattern: str, count: int) -> list[Label] | None:
    """The labels of each sentence: of the matches in their order. None unless there are as many as sentences.

    pattern: with a group `correct`, and, if it is to be read, `faithful`; 1, + and yes say that it is.
    """
    found = list(re.finditer(pattern, judgement))
    if len(found) != count:
        return None
    named = [match.groupdict() for match in found]
    return [(_holds(x["faithful"]) if x.get("faithful") else None, _holds(x["correct"])) for x in named]


def _holds(mark: str) -> bool:
    return mark.lower() in ("1", "+", "yes")


def written(sentences: Sequence[Sentence], line: str) -> str:
    """A judgement with these labels, a line for each sentence.

    line: with {number}, {faithful}, {reason} and {correct}. A sentence of unknown faithfulness is written as faithful if correct.
    """
    return "\n".join(
        filled(
            line, number=str(i), faithful=str(int(s.correct if s.faithful is None else s.faithful)), reason=s.reason,
            correct=str(int(s.correct)),
        )
        for i, s in enumerate(sentences, 1)
    )  # fmt: skip


def agreement(judged: Sequence[Label] | None, labels: Sequence[Label], faithful: float = 1.0) -> float:
    """Mean over sentences of what is labelled rightly: correctness with weight 1, faithfulness, where it is known, with `faithful`.

    `UNREAD` where the judgement cannot be read.
    """
    if judged is None or not labels:
        return UNREAD
    shares = []
    for (f, c), (true_f, true_c) in zip(judged, labels, strict=True):
        weight = 0.0 if true_f is None else faithful
        shares.append(((c == true_c) + weight * (f == true_f)) / (1 + weight))
    return sum(shares) / len(shares)
