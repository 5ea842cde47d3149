"""Chains of arithmetic of which only the remainder of the result is asked for: the answer can be guessed, the chain cannot.

    Start with 7. Add 5. Multiply by 3.       7+5=12        7+5=13
                                              12*3=36       13*3=39
                                              Answer: 0     Answer: 3        (of 36 and of 39, by 4)

A wrong chain has the right answer about once in as many times as there are remainders, so that a few replies to a problem contain
one by chance.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from rewardlab.core import Problem, Task, Trajectory
from rewardlab.core.problem import ProblemSource
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.sources import changed
from rewardlab.text.splitters import cut


def remainders(
    *, by: PositiveInt = 4, difficulty: int | tuple[int, int] = 3, error: Share = 0.22, biased: Share = 0.0,
    test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """The problems of arithmetic and its teacher, whose answers are remainders of the results by this number."""
    task = arithmetic(difficulty=difficulty, error=error, biased=biased, test_size=test_size, size=size)
    assert task.demonstrate is not None
    asked = partial(_asked, by=by)
    return replace(
        task, name="remainders", train=Reduced(task.train, by), test=changed(task.test, asked),
        demonstrate=partial(_demonstrate, by=by, careless=task.demonstrate), pass_rate=None, shared=False,
        # a guess is right once in `by` times: chains alone are right less often than this
        window=(0.45, 0.7),
        about=f"remainders by {by} of chains of arithmetic",
    )  # fmt: skip


@dataclass(frozen=True)
class Reduced:
    """Problems of arithmetic with remainders for answers."""

    source: ProblemSource
    by: int

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]

    def __getitem__(self, position: int) -> Problem:
        return _asked(self.source[position], self.by)


def _asked(problem: Problem, by: int) -> Problem:
    left = str(int(problem.answer) % by)
    return replace(problem, answer=left, meta={**problem.meta, "solution": _reduced(problem.meta["solution"], by)})


def _demonstrate(problem: Problem, rng: random.Random, *, by: int, careless: Callable[[Problem, random.Random], str]) -> str:
    return _reduced(careless(problem, rng), by)


def _reduced(solution: str, by: int) -> str:
    """A solution whose answer is the remainder of its result."""
    lines, _, result = solution.rpartition("Answer: ")
    return f"{lines}Answer: {int(result) % by}"


@reward
def right_chain(trajectory: Trajectory) -> float | None:
    """1 where the lines above the answer are the gold steps, 0 where they are not; no verdict without gold steps."""
    gold = trajectory.problem.meta.get("steps")
    if not gold:
        return None
    lines = ["".join(line.split()) for line in cut(trajectory.reply, "newline")]
    return float(lines[:-1] == ["".join(step.split()) for step in gold])
