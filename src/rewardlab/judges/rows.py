"""Rows that are judged in whatever way they are labelled: a reply with a score, a reply with a label, or a pair.

`cases.py` gives one form of judge all rows; here one judge answers several forms, and each row is asked about in its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from rewardlab.core import Problem
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import Case, label_of, to_judge
from rewardlab.judges.forms import Form, Kind

HOW = (
    "Rows to judge have a pair, `chosen` and `rejected`; or a `reply` with its `score`, a whole number of the judge's scale; or a "
    "`reply` with its `label`, yes or no"
)
BACK = "_reversed"
"""Behind the name of a column that holds a text about a pair whose worse reply stands first."""


class Question(NamedTuple):
    """A question to the judge about a row, and the mark that is right.

    back: what stands behind the name of columns about it: "_reversed" where the worse reply of a pair stands first, else nothing.
    """

    kind: Kind
    asked: Problem
    mark: str
    back: str = ""


def kind_of(problem: Problem) -> Kind:
    """How a row is labelled. Raises RewardlabError for one that is not."""
    meta = problem.meta
    if isinstance(meta.get("chosen"), str) and isinstance(meta.get("rejected"), str):
        return "pairwise"
    if isinstance(meta.get("reply"), str):
        if meta.get("score") is not None:
            return "scale"
        if meta.get("label") is not None:
            return "verdict"
    raise RewardlabError(f"problem {problem.question[:60]!r} has nothing to judge. {HOW} (it has {', '.join(meta) or 'none'})")


def questions_of(problem: Problem, forms: Mapping[Kind, Form]) -> list[Question]:
    """The questions about a row in the form of its kind: a pair in both orders, the better reply first in the first one."""
    kind = kind_of(problem)
    if kind not in forms:
        raise RewardlabError(
            f"problem {problem.question[:60]!r} is for a judge of kind {kind!r}, and this one judges {', '.join(forms)} alone"
        )
    form = forms[kind]
    if kind == "pairwise":
        case = Case((problem.meta["chosen"], problem.meta["rejected"]), (1.0, 0.0))
        orders = (("", (0, 1)), (BACK, (1, 0)))
        return [Question(kind, to_judge(problem, case.at(o), form), mark_of(form, case.at(o).worth[0]), b) for b, o in orders]
    worth = value_of(score_of(problem, form), form) if kind == "scale" else float(label_of(problem.meta["label"], problem) > 0.5)
    return [Question(kind, to_judge(problem, Case((problem.meta["reply"],), (worth,)), form), mark_of(form, worth))]


def score_of(problem: Problem, form: Form) -> int:
    """The score of a row, which is one of the form's scale."""
    if form.marks is None or not form.marks.scale:
        raise RewardlabError(f"the judge's form {form.name} grades on no scale: take prometheus, or a text of kind 'scale'")
    try:
        found = float(problem.meta["score"])
    except (TypeError, ValueError):
        found = math.nan
    if not (form.marks.low <= found <= form.marks.high and found.is_integer()):
        raise RewardlabError(
            f"the score {problem.meta['score']!r} of problem {problem.question[:60]!r} is no whole number from {form.marks.low} to "
            f"{form.marks.high}, the scale of the form {form.name}"
        )
    return int(found)


def value_of(score: float, form: Form) -> float:
    """A score of the form's scale as a number from 0 to 1."""
    assert form.marks is not None
    return (score - form.marks.low) / (form.marks.high - form.marks.low)


def mark_of(form: Form, worth: float) -> str:
    """The mark, as it is written, whose value is the nearest to this, from 0 to 1."""
    assert form.marks is not None
    known = list(zip(form.marks.texts, form.marks.values.values(), strict=True))
    return min(known, key=lambda item: abs(item[1] - worth))[0]


def is_right(question: Question, judgement: str, form: Form) -> bool:
    """Whether a judgement gives the mark that is right."""
    said, wanted = form.read(judgement, 1), form.read(question.mark, 1)
    return said.values is not None and said.values == wanted.values
