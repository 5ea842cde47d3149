"""Chains of arithmetic in two parts: an error-prone train of thought, a mark, and a response that is worked out again.

7+5=13
13*3=39
</think>
7+5=12
12*3=36
Answer: 36
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Score, Task, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import going_on, step_texts, unequal
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic

MARK = "</think>"


def rethought(
    *, difficulty: PositiveInt = 3, careless: Share = 0.35, careful: Share = 0.1, biased: Share = 0.4, test_size: PositiveInt =
    1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Chains of `difficulty` steps, as in `arithmetic`.

    careless, careful: how often the teacher slips in a step of the thought, and of the response.  biased: how often it follows a
    wrong rule in the thought, as in `arithmetic`.  size: so many training problems, in epochs; None: endless.
    """
    of = arithmetic(difficulty=difficulty, error=careless, biased=biased, test_size=test_size, size=size)
    again = arithmetic(difficulty=difficulty, error=careful, test_size=1).demonstrate
    assert of.demonstrate is not None
    assert again is not None
    return replace(
        of, name="rethought", max_new=24 * (difficulty + 2), about="chains of arithmetic: a careless thought, and a response",
        demonstrate=partial(_demonstrate, thought=of.demonstrate, response=again), pass_rate=None, shared=False, step_verifier=None,
    )  # fmt: skip


def _demonstrate(
    problem: Problem, rng: random.Random, *, thought: Callable[[Problem, random.Random], str],
    response: Callable[[Problem, random.Random], str],
) -> str:  # fmt: skip
    lines = thought(problem, rng).splitlines()[:-1]
    return "\n".join([*lines, MARK, response(problem, rng)])


@reward(steps=True)
def sound_thoughts(trajectory: Trajectory, *, mark: str = MARK) -> list[tuple[int, float]] | Score:
    """1 at the end of each line before the mark that does what the gold step in its place does, rightly, 0 at the others there.

    For problems whose meta["steps"] are equations. No verdict where the mark is missing, or comes first.
    """
    gold, lines = trajectory.problem.meta.get("steps"), step_texts(trajectory, "newline")
    if len(lines) != len(trajectory.steps):
        return unequal(lines, trajectory)
    if not gold or mark not in lines[1:]:
        return Score(None, why="the problem has no steps, or the reply no thought")
    # a further line than there are steps would be judged as the answer
    right = going_on(lines[: lines.index(mark, 1)], gold)[: len(gold)]
    return [(at, float(ok)) for at, ok in zip(trajectory.steps, right, strict=False)]
