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
UNREAD = 0.0
"""What a judgement that cannot be read counts in a measure of a judge, and is paid to a judge that learns and is paid from 0 to 1:
as much as a wrong one. A half would be the worth of a coin, which a judge could have by saying nothing. Where judgements pay a
policy, one that cannot be read is no verdict, and of several votes it is none. RewardBench counts a half (scoreboard/pairs.py)."""
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


def check_cases(problems: Sequence[Problem], form: Form) -> None:
    """Raise RewardlabError, with its place, for a row with nothing to judge or without a column that the form shows, and for labels
    that a judge of single replies cannot agree with; and where the replies of every row are worth the same, so that no judgement is
    right or wrong. Rows that are questions to a judge pass."""
    judged = 0
    for problem in problems:
        if WORTH in problem.meta:
            judged += 1
            continue
        try:
            cases = cases_of(problem, form)
            to_judge(problem, cases[0], form)
            if form.kind in ("scale", "verdict") and not all(0 <= x <= 1 for case in cases for x in case.worth):
                said = ", ".join(f"{x:g}" for case in cases for x in case.worth)
                raise RewardlabError(
                    f"a judge of the form {form.name} says of each reply alone whether it is good, and what the row of "
                    f"{problem.question[:40]!r} says ({said}) is not from 0 to 1: write labels as yes and no, or scale them"
                )
        except RewardlabError as bad:
            raise RewardlabError(f"{problem.place}: {bad}" if problem.place else str(bad)) from None
        judged += sum(not all_alike(case.worth) for case in cases)
    if not judged:
        raise RewardlabError(
            f"in all {len(problems)} rows the replies are worth the same: no judgement of them is right or wrong. {HOW}, of which "
            "one is worth more than another"
        )


def questions_about(problem: Problem, form: Form) -> list[Problem]:
    """The questions to a judge about a row, its replies as they stand; the row itself where it is one."""
    return [problem] if WORTH in problem.meta else [to_judge(problem, case, form) for case in cases_of(problem, form)]


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
