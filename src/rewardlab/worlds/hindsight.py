"""Chains of arithmetic with two candidate answers: one that follows from its lines, and one pasted below lines that lead elsewhere.

    Start with 7. Add 5. Multiply by 3.       7+5=12        7+5=13
                                              12*3=36       13*3=39
                                              Answer: 36    Answer: 36

A verifier of answers cannot tell them apart; whoever goes on from the first lines can. Either may have lines that only check.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.cues import with_checks
from rewardlab.tasks.pairs import Paired, all_paired

SLIPS = 0.5
"""How often the teacher errs on a step whose lines lead elsewhere; asked again until one does."""


def hindsight(*, checks: Share = 0.3, test_size: PositiveInt = 1000, size: PositiveInt | None = None) -> Task:
    """The problems of arithmetic, with the columns `followed` and `hindsight` and a score for each: 1 and 0.

    checks: how often a solution has lines that only check.  size: so many training problems, in epochs; None: endless.
    """
    if not 0 <= checks <= 1:
        raise RewardlabError(f"hindsight: checks is a share between 0 and 1, not {checks}")
    task = arithmetic(error=SLIPS, test_size=test_size, size=size)
    assert task.demonstrate is not None
    both = partial(_both, careless=task.demonstrate, checks=checks)
    columns = ("followed", "followed_score", "hindsight", "hindsight_score")
    return replace(
        task, name="hindsight", train=Paired(task.train, both), test=all_paired(task.test, both),
        about="chains of arithmetic, with right answers that do not follow from their lines", columns=(*task.columns, *columns),
        warmed_as="arithmetic",
    )  # fmt: skip


def _both(problem: Problem, rng: random.Random, *, careless: Callable[[Problem, random.Random], str], checks: float) -> Problem:
    gold = f"Answer: {problem.answer}"
    while (slipped := careless(problem, rng)).endswith(f"\n{gold}"):
        pass
    texts = problem.meta["solution"], f"{slipped.rpartition(chr(10))[0]}\n{gold}"
    followed, led = (with_checks(text) if rng.random() < checks else text for text in texts)
    scored = {"followed": followed, "followed_score": 1.0, "hindsight": led, "hindsight_score": 0.0}
    return replace(problem, meta={**problem.meta, **scored})
