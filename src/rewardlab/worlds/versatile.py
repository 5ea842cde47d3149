"""One policy for two tasks: to solve chains of arithmetic, and to judge solutions of them line by line.

    Start with 7. Add 5.      ->      7+5=12              Start with 7. Add 5.       ->      7+5=12 13 -
                                      Answer: 12          1: 7+5=13                          Answer: 13 13 +
                                                          2: Answer: 13                      Final: -

Both are demonstrated by careless teachers; the held-out problems are to be solved.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.sources import Shuffled, changed
from rewardlab.worlds.verdicts import SIGNS, WORDS, verdicts

SOLVE, JUDGE = "solve", "judge"


@dataclass(frozen=True)
class Both:
    """Problems to solve and solutions to judge, in turn."""

    solve: Any
    judge: Any

    def __getitem__(self, position: int) -> Problem:
        at, odd = divmod(position, 2)
        return judging(self.judge[at]) if odd else solving(self.solve[at])


def solving(problem: Problem) -> Problem:
    return replace(problem, meta={**problem.meta, "ability": SOLVE, "verifier": "final_number"})


def judging(problem: Problem) -> Problem:
    """The answer is the sign of the final verdict."""
    verifier = {"name": "stated_after", "label": "Final"}
    return replace(
        problem, answer=SIGNS[problem.answer == WORDS[True]], meta={**problem.meta, "ability": JUDGE, "verifier": verifier}
    )


def versatile(
    *, difficulty: PositiveInt = 3, biased: Share = 0.75, error: Share = 0.1, doubt: Share = 0.1, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Chains of `difficulty` steps; the column ability says what is asked.

    biased, error: of the solver, as of `arithmetic`.  doubt: how often the judge gets a line wrong, as of `verdicts`.
    size: so many training problems, in epochs; None: endless.
    """
    each = None if size is None else (size + 1) // 2
    solve = arithmetic(difficulty=difficulty, biased=biased, error=error, test_size=test_size, size=each)
    # what is to be judged goes wrong in all ways, so that a judge cannot go by one
    judge = verdicts(difficulty=difficulty, error=0.3, doubt=doubt, test_size=1, size=each)
    train = Both(solve.train, judge.train)
    return Task(
        name="versatile",
        train=train if size is None else Shuffled([train[i] for i in range(size)]),
        test=changed(solve.test, solving),
        verifier="named_verifier",
        max_new=max(solve.max_new, judge.max_new),
        about="chains of arithmetic to solve, and solutions of them to judge",
        demonstrate=partial(_demonstrate, teachers={SOLVE: solve.demonstrate, JUDGE: judge.demonstrate}),
        warmup_steps=2000,
        columns=(*dict.fromkeys((*solve.columns, *judge.columns)), "ability", "verifier"),
    )


def _demonstrate(problem: Problem, rng: random.Random, *, teachers: Mapping[str, Any]) -> str:
    return teachers[problem.meta["ability"]](problem, rng)
