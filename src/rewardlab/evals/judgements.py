"""How well a model judges held-out replies: whether its verdicts are right, in both orders, by several votes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from rewardlab.core import Problem, Run, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.asking import judgements_of
from rewardlab.judges.cases import UNREAD, Case, agrees, all_alike, best_of, cases_of, to_judge
from rewardlab.judges.forms import Form
from rewardlab.judges.named import form_of
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt


class Asked(NamedTuple):
    """A question about a row.  order: the places, in the row's case, of the replies that it shows."""

    row: int
    order: tuple[int, ...]
    question: Problem


def orders_of(case: Case) -> list[tuple[int, ...]]:
    """The orders in which replies are shown: as they are and reversed; one for a single reply."""
    forth = tuple(range(len(case.replies)))
    return [forth] if len(forth) == 1 else [forth, forth[::-1]]


def questions(problems: Sequence[Problem], form: Form) -> tuple[list[list[Case]], list[Asked]]:
    """The cases of each row, and all questions about them. Single replies of a row are asked about one by one.

    Nothing is asked about replies that are all worth the same. Raises RewardlabError where there is nothing to ask.
    """
    cases = [cases_of(p, form) for p in problems]
    asked = [
        Asked(i, tuple(at + k for k in order) if len(case.replies) == 1 else order, to_judge(p, case.at(order), form))
        for i, (p, own) in enumerate(zip(problems, cases, strict=True))
        for at, case in enumerate(own)
        if not all_alike(case.worth)
        for order in orders_of(case)
    ]
    if problems and not asked:
        raise RewardlabError(
            f"in all {len(problems)} held-out rows the replies are worth the same: a judge can be right about none"
        )
    return cases, asked


class Judged(NamedTuple):
    """Judgements of held-out rows.

    cases: of each row.  asked: the questions.  texts, values: of k judgements of each question; a value is None where a judgement
    cannot be read.  tokens: of one judgement, on average.
    """

    cases: list[list[Case]]
    asked: list[Asked]
    texts: list[list[str]]
    values: list[list[tuple[float, ...] | None]]
    tokens: float

    @property
    def right(self) -> list[list[bool]]:
        """Whether each judgement has the right verdict; one that cannot be read has not."""
        worth = [a.question.meta["worth"] for a in self.asked]
        return [[v is not None and agrees(v, w) for v in row] for row, w in zip(self.values, worth, strict=True)]


def judged(
    problems: Sequence[Problem], run: Run, of: Form, k: int = 1, model: str = "policy", temperature: float = 1.0,
    max_new: int | None = None,
) -> Judged:  # fmt: skip
    """k judgements by `model` of each question about the rows, which are asked about in both orders.

    A question that does not fit the model's context gets empty judgements.
    """
    cases, asked = questions(problems, of)
    said = judgements_of(run, [a.question for a in asked], k, model, temperature, max_new)
    texts = [[t.reply for t in group] or [""] * k for group in said]
    values = [[of.read(text, len(a.order)).values for text in row] for a, row in zip(asked, texts, strict=True)]
    lengths = [t.mask.sum() for group in said for t in group]
    return Judged(cases, asked, texts, values, float(np.mean(lengths)) if lengths else 0.0)


def accuracy_of(found: Judged) -> dict[str, float]:
    """What `judgement_accuracy` says of judgements."""
    right = [float(x) for row in found.right for x in row]
    low, high = mean_interval(right)
    return {
        "judged": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(found.cases)),
        **_ranked(found.cases, found.asked, found.values),
        "unread": float(np.mean([v is None for row in found.values for v in row])), "judgement_tokens": found.tokens,
    }  # fmt: skip


@measure
def judgement_accuracy(
    problems: Sequence[Problem], run: Run, *, form: str = "",
    kind: Literal["scale", "verdict", "pairwise", "scores"] = "pairwise", k: PositiveInt = 1, model: str = "policy",
    temperature: NonNegativeFloat = 1.0, max_new: PositiveInt | None = None,
) -> dict[str, float]:  # fmt: skip
    """Judgements of held-out replies, k of each in both orders, by `model`.

    judged: the share of judgements with a right verdict; one that cannot be read is wrong.  pair_accuracy: the share of pairs (of
    rows, where lists are compared: of their best and worst reply) that the mean over orders and votes ranks right, ties half, and
    not those of which nothing can be read.
    consistent: the share of pairs that both orders rank alike.  prefers_first: how often the reply that stands first is preferred;
    .5 for a judge that does not look at the order.  unread: judgements without a verdict.  judgement_tokens: of one, on average.
    """
    return accuracy_of(judged(problems, run, form_of(form, kind), k, model, temperature, max_new))


def _ranked(cases: list[list[Case]], asked: list[Asked], values: list[list[tuple[float, ...] | None]]) -> dict[str, float]:
    """What the judgements say of rows with more than one reply; nothing where there are none."""
    sums: list[dict[int, list[float]]] = [{} for _ in cases]
    preferred: dict[int, list[int | None]] = {}
    first: list[float] = []
    for a, row in zip(asked, values, strict=True):
        known = [v for v in row if v is not None]
        for v in known:
            for place, x in zip(a.order, v, strict=True):
                sums[a.row].setdefault(place, []).append(x)
        if len(a.order) > 1:
            first += [float(best == 0) for v in known if (best := best_of(v)) is not None]
            mean = np.mean(known, axis=0).tolist() if known else None
            best = best_of(mean) if mean else None
            preferred.setdefault(a.row, []).append(None if best is None else a.order[best])
    told = {a.row for a in asked}
    wins = [_won(whole, sums[i]) for i, own in enumerate(cases) if i in told and (whole := _whole(own))]
    if not wins:
        return {}
    same = [float(row[0] is not None and len(set(row)) == 1) for row in preferred.values()]
    return {
        "pair_accuracy": float(np.mean(wins)), **({"consistent": float(np.mean(same))} if same else {}),
        **({"prefers_first": float(np.mean(first))} if first else {}),
    }  # fmt: skip


def _whole(cases: list[Case]) -> tuple[float, ...] | None:
    """What all replies of a row are worth, if they differ."""
    worth = tuple(itertools.chain.from_iterable(case.worth for case in cases))
    return worth if len(set(worth)) > 1 else None


def _won(worth: tuple[float, ...], found: dict[int, list[float]]) -> float:
    best, worst = worth.index(max(worth)), worth.index(min(worth))
    if best not in found or worst not in found:
        return UNREAD
    a, b = float(np.mean(found[best])), float(np.mean(found[worst]))
    return 0.5 if a == b else float(a > b)
