"""What rows give a judge to judge, and whether a judgement agrees with what the replies are worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rewardlab.core import Problem
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.judges.forms import Form

SHOWN, WORTH, TURNS = "shown", "worth", "turns"
"""Columns of a question to a judge: the replies that it shows, in their order, and what each is worth; and the roles and texts of a
conversation of more than one message, to which they reply."""
HOW = "Rows to judge have a pair, `chosen` and `rejected`; or `replies` with their `scores`; or a `reply` with its `label`"
LABELS = {"right": 1.0, "wrong": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "correct": 1.0, "incorrect": 0.0}


class Case(NamedTuple):
    """Replies to be judged together, and what each is worth: higher is better, from 0 to 1 where they are labels."""

    replies: tuple[str, ...]
    worth: tuple[float, ...]

    def at(self, order: Sequence[int]) -> Case:
        return Case(tuple(self.replies[i] for i in order), tuple(self.worth[i] for i in order))


def cases_of(problem: Problem, form: Form) -> list[Case]:
    """What a row gives a judge of this form to judge: all its replies at once, or each alone where the form shows one.

    Raises RewardlabError for a row that has none.
    """
    meta = problem.meta
    replies, scores = list_of(meta.get("replies")), list_of(meta.get("scores"))
    if replies and scores and len(replies) == len(scores):
        whole = Case(tuple(map(str, replies)), tuple(map(float, scores)))
    elif isinstance(meta.get("chosen"), str) and isinstance(meta.get("rejected"), str):
        whole = Case((meta["chosen"], meta["rejected"]), (1.0, 0.0))
    elif isinstance(meta.get("reply"), str) and meta.get("label") is not None:
        whole = Case((meta["reply"],), (label_of(meta["label"], problem),))
    else:
        raise RewardlabError(
            f"problem {problem.question[:60]!r} has no replies to judge. {HOW} (it has {', '.join(meta) or 'none'})"
        )
    if form.kind in ("scale", "verdict"):
        return [whole.at([i]) for i in range(len(whole.replies))]
    if len(whole.replies) < 2:
        raise RewardlabError(f"the judge's form {form.name} compares replies, and problem {problem.question[:60]!r} has one. {HOW}")
    if form.kind == "pairwise" and len(whole.replies) > 2:
        order = sorted(range(len(whole.worth)), key=lambda i: -whole.worth[i])
        return [whole.at([order[0], order[-1]])]
    return [whole]


def label_of(label: Any, problem: Problem) -> float:
    """A label of a single reply as a number from 0 to 1."""
    if isinstance(label, str) and label.strip().lower() in LABELS:
        return LABELS[label.strip().lower()]
    try:
        return float(label)
    except (TypeError, ValueError):
        known = ", ".join(LABELS)
        raise RewardlabError(
            f"the label {label!r} of problem {problem.question[:60]!r} is neither a number nor one of {known}"
        ) from None


def to_judge(problem: Problem, case: Case, form: Form) -> Problem:
    """The question to a judge about these replies, in this order."""
    asked = form.asked(problem, case.replies)
    told = {"question": problem.question, SHOWN: list(case.replies), WORTH: list(case.worth)}
    if len(problem.prompt) > 1:
        told[TURNS] = [[m.role, m.text] for m in problem.prompt]
    return replace(asked, meta={**problem.meta, **told})


def best_of(values: Sequence[float]) -> int | None:
    """The place of the highest value; None where two are as high."""
    top = max(values)
    return values.index(top) if sum(v == top for v in values) == 1 else None


def agrees(values: Sequence[float], worth: Sequence[float]) -> bool:
    """Whether a judgement finds one reply alone to be the best, and it is, or is one of several that are worth the most; of a
    single reply, whether both lie on one side of 1/2."""
    if len(worth) == 1:
        return (values[0] > 0.5) == (worth[0] > 0.5)
    return (found := best_of(values)) is not None and worth[found] == max(worth)


def all_alike(worth: Sequence[float]) -> bool:
    """Whether several replies are worth the same, so that no judgement of them is right or wrong."""
    return len(worth) > 1 and min(worth) == max(worth)
