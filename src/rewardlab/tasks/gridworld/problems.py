"""Gridworld: reach a goal that pays once, on a grid with a trap that a badly chosen second reward may praise.

For policies that read observations (`model="actor"`); the world itself is `envs.gridworld`.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import Generated, test_set

SHAPE: dict[str, Any] = {"observation": 6, "action": 4, "discrete": True}


def gridworld(*, size: int = 5, test_size: int = 500) -> Task:
    """Grids of size x size whose start, goal and trap are drawn apart from each other."""
    if not 3 <= size <= 100:
        raise RewardlabError(f"gridworld: size must be between 3 and 100, not {size}")
    draw, key = partial(_draw, size=size), ("gridworld", size)
    return Task(
        name="gridworld",
        train=Generated(draw, key),
        test=test_set(draw, key, test_size),
        verifier="earned",
        max_new=1,
        about=f"find the goal on a {size} x {size} grid",
        model="actor",
        columns=("prompt", "size", "start", "goal", "trap", "shape"),
    )


def _draw(rng: random.Random, *, size: int) -> Problem:
    start, goal, trap = ([cell // size, cell % size] for cell in rng.sample(range(size * size), 3))
    question = f"Grid {size} x {size}: from {start} to {goal}; trap at {trap}."
    return ask(question, size=size, start=start, goal=goal, trap=trap, shape=SHAPE)
