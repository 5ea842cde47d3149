"""Charts of seven values, and whether a patient is at risk. A reply names the values that it goes by, then answers.

    age 3, bp 8, hr 2, na 9, k 8, wbc 7, temp 1. Risk?          bp 8, wbc 7. Answer: high

Two values tell the risk: it is high where their sum is 9 or more. Two others go along with it, for no reason, in `shortcut` of the
charts, as a ward's habits do; the rest mean nothing. A policy that goes by the wrong two is right most of the time, until habits
change: of the held-out charts half are like those of training (`kind` same), and in half these two are as they come (shifted).

The column `salient` names the values that an expert goes by: a small model that was fitted to a few charts, some
of them of a ward without these habits. It is right more often than not about what tells the risk, and not always.
"""

from __future__ import annotations

import random
from functools import cache, partial

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import test_set, training

from .expert import Expert, fit

FEATURES = ("age", "bp", "hr", "na", "k", "wbc", "temp")
CAUSAL, SHORTCUT = (1, 5), (3, 4)
"""Positions of the values that tell the risk, and of those that go along with it."""
HIGH = 9
LEARNT_FROM, OTHER_WARD = 200, 4
"""Charts that the expert is fitted to; one in so many is of a ward without these habits."""


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
    key, sample = ("charts", shortcut), partial(_sample, shortcut=shortcut)
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
    moved = rng.random() < shifted
    values, high = _chart(rng, 0.0 if moved else shortcut)
    salient = [FEATURES[i] for i in expert().salient(values, len(CAUSAL))]
    question = f"{', '.join(f'{name} {value}' for name, value in zip(FEATURES, values, strict=True))}. Risk?"
    return ask(
        question, "high" if high else "low", kind="shifted" if moved else "same", features=list(FEATURES), salient=salient,
        values=values, solution=_said(values, CAUSAL),
    )  # fmt: skip


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
def expert() -> Expert:
    """Fitted to a few charts, most of them of the ward with these habits."""
    rng = random.Random(seed_of("charts", "expert"))
    found = [_chart(rng, 0.9 if i % OTHER_WARD else 0.0) for i in range(LEARNT_FROM)]
    return fit([values for values, _ in found], [high for _, high in found])


def _said(values: list[int], of: tuple[int, int], opposite: bool = False) -> str:
    high = _adds_up(values, of) != opposite
    return f"{', '.join(f'{FEATURES[i]} {values[i]}' for i in of)}. Answer: {'high' if high else 'low'}"


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    by = SHORTCUT if rng.random() < biased else CAUSAL
    return _said(problem.meta["values"], by, rng.random() < error)
