"""Held-out rows that are judged each in its own kind: by score, by label or as a pair, and counted by any column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from rewardlab.core import Problem, Run
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.asking import judgements_of
from rewardlab.judges.forms import Form, Kind
from rewardlab.judges.rows import Question, is_right, questions_of


class Marked(NamedTuple):
    """A judgement of a held-out row.  read: whether it has a mark at all."""

    problem: Problem
    question: Question
    text: str
    right: bool
    read: bool


def marked(rows: Sequence[Problem], run: Run, forms: Mapping[Kind, Form], temperature: float = 1.0) -> list[Marked]:
    """One judgement of each question about the rows, pairs in both orders; one that found no room is empty, and so not right."""
    asked = [(p, q) for p in rows for q in questions_of(p, forms)]
    groups = judgements_of(run, [q.asked for _, q in asked], temperature=temperature)
    texts = [group[0].reply if group else "" for group in groups]
    return [
        Marked(p, q, text, is_right(q, text, forms[q.kind]), forms[q.kind].read(text).values is not None)
        for (p, q), text in zip(asked, texts, strict=True)
    ]


def shares(found: Sequence[Marked], name: Callable[[Marked], str]) -> dict[str, float]:
    """The share of right judgements, by name."""
    by: dict[str, list[bool]] = {}
    for one in found:
        by.setdefault(name(one), []).append(one.right)
    return {key: float(np.mean(row)) for key, row in sorted(by.items())}


def over(found: Sequence[Marked], groups: Mapping[str, float], rows: int) -> dict[str, float]:
    """judged: the mean over groups, so that none outweighs another; with the interval of all judgements, and the groups."""
    low, high = mean_interval([float(one.right) for one in found])
    return {"judged": float(np.mean(list(groups.values()))), "ci95_low": low, "ci95_high": high, "n": float(rows), **groups}
