"""Gridworld: a goal with a sparse reward, and a trap that a badly chosen auxiliary reward may praise.

For policies that read observations (`model="actor"`); its dynamics are in `environment.py`.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.sources import test_set, training

SHAPE: dict[str, Any] = {"observation": 6, "action": 4, "discrete": True}


def gridworld(*, side: PositiveInt = 5, test_size: PositiveInt = 500, size: PositiveInt | None = None) -> Task:
    """Grids of side x side with a start, a goal and a trap on different cells.

    size: so many training problems, in epochs; None: endless.
    """
    if not 3 <= side <= 100:
        raise RewardlabError(f"gridworld: side must be between 3 and 100, not {side}")
    sample, key = partial(_sample, side=side), ("gridworld", side)
    return Task(
        name="gridworld",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="earned",
        max_new=1,
        about=f"find the goal on a {side} x {side} grid",
        model="actor",
        columns=("prompt", "size", "start", "goal", "trap", "shape"),
    )


def _sample(rng: random.Random, *, side: int) -> Problem:
    start, goal, trap = ([cell // side, cell % side] for cell in rng.sample(range(side * side), 3))
    question = f"Grid {side} x {side}: from {start} to {goal}; trap at {trap}."
    return ask(question, size=side, start=start, goal=goal, trap=trap, shape=SHAPE)
