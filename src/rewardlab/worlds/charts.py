"""Risk prediction from charts of seven values: a reply names the values that it uses, then answers. A reply names the values that
it goes by, then answers.

    age 3, bp 8, hr 2, na 9, k 8, wbc 7, temp 1. Risk?          bp 8, wbc 7. Answer: high

Two values tell the risk: it is high where their sum is 9 or more. Two others go along with it, for no reason, in `shortcut` of the
charts, as a ward's habits do; the rest mean nothing. A policy that goes by the wrong two is right most of the time, until habits
change: of the held-out charts half are like those of training (`kind` same), and in half these two are as they come (shifted).

The column `salient` names the values that an expert goes by: a small model that was fitted to the first charts of training, and to
nothing else. It is right more often than not about what tells the risk, and not always.
"""

from __future__ import annotations

import random
from functools import cache, partial

from rewardlab.core import Problem, Task, ask
from rewardlab.data.salient import Expert, fit
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import Generated, test_set, training

FEATURES = ("age", "bp", "hr", "na", "k", "wbc", "temp")
CAUSAL, SHORTCUT = (1, 5), (3, 4)
"""Positions of the values that tell the risk, and of those that go along with it."""
HIGH = 9
LEARNT_FROM = 200
"""The first so many charts of training are those that the expert is fitted to."""


def charts(
    *, shortcut: Share = 0.9, biased: Share = 0.7, error: Share = 0.1, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Charts of one ward.

    shortcut: share of charts in which the two values go along with the risk.  biased: how often the teacher of `demonstrate` goes
    by them, and not by the two that tell it.  error: how often it answers the opposite.  size: so many training problems, in
    epochs; None: endless.
    """
    for name, share in (("shortcut", shortcut), ("biased", biased), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"charts: {name} is a share between 0 and 1, not {share}")
    key, sample = _key(shortcut), partial(_sample, shortcut=shortcut)
    return Task(
        name="charts",
        train=training(partial(sample, shifted=0.0), key, size),
        test=test_set(partial(sample, shifted=0.5), key, test_size),
        verifier="final_answer",
        max_new=40,
        about="charts of patients, and whether they are at risk",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "kind", "features", "salient", "values", "solution"),
        window=(0.2, 0.75),
    )


def _sample(rng: random.Random, *, shortcut: float, shifted: float) -> Problem:
    record = _record(rng, shortcut=shortcut, shifted=shifted)
    values = record.meta["values"]
    salient = [FEATURES[i] for i in expert(shortcut).salient(values, len(CAUSAL))]
    meta = {**record.meta, "features": list(FEATURES), "salient": salient, "solution": _said(values, CAUSAL)}
    return ask(record.question, record.answer, **meta)


def _record(rng: random.Random, *, shortcut: float, shifted: float = 0.0) -> Problem:
    """A chart and its risk, as an expert may learn from it."""
    moved = rng.random() < shifted
    values, high = _chart(rng, 0.0 if moved else shortcut)
    question = f"{', '.join(f'{name} {value}' for name, value in zip(FEATURES, values, strict=True))}. Risk?"
    return ask(question, "high" if high else "low", kind="shifted" if moved else "same", values=values)


def _key(shortcut: float) -> tuple[str, float]:
    return "charts", shortcut


def _chart(rng: random.Random, shortcut: float) -> tuple[list[int], bool]:
    """Values, and whether the risk is high. shortcut: the chance that two values go along with it."""
    values = [rng.randint(0, 9) for _ in FEATURES]
    high = _adds_up(values, CAUSAL)
    while rng.random() < shortcut and _adds_up(values, SHORTCUT) != high:
        for i in SHORTCUT:
            values[i] = rng.randint(0, 9)
    return values, high


def _adds_up(values: list[int], of: tuple[int, int]) -> bool:
    return values[of[0]] + values[of[1]] >= HIGH


@cache
def expert(shortcut: float = 0.9) -> Expert:
    """Fitted to the first charts of training, with the ward's habits in them."""
    # the same stream as the task's own: what it skips as held out is skipped here
    charts = Generated(partial(_record, shortcut=shortcut), _key(shortcut))
    seen = [charts[i] for i in range(LEARNT_FROM)]
    return fit([p.meta["values"] for p in seen], [p.answer == "high" for p in seen])


def _said(values: list[int], of: tuple[int, int], opposite: bool = False) -> str:
    high = _adds_up(values, of) != opposite
    return f"{', '.join(f'{FEATURES[i]} {values[i]}' for i in of)}. Answer: {'high' if high else 'low'}"


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    by = SHORTCUT if rng.random() < biased else CAUSAL
    return _said(problem.meta["values"], by, rng.random() < error)
