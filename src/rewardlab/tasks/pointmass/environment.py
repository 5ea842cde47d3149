"""A point with inertia on the square [-1, 1]^2, pushed by a force (2,) in [-1, 1]^2; every step pays minus its distance to a goal.

    v <- 0.8 v + 0.2 force;   x <- x + 0.25 v, stopped at the walls;   r = -|goal - x|

problem.meta: start, goal. The observation is (x, v, goal - x), six numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardlab.core import Message, Problem, Turn, environment

DRAG, PUSH, STEP = 0.8, 0.2, 0.25

State = dict[str, Any]


def observe(x: np.ndarray, v: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The observation (..., 6): place, velocity, and the offset to the goal."""
    return np.concatenate((x, v, goal - x), -1).astype(np.float32)


def advance(x: np.ndarray, v: np.ndarray, force: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place and velocity (..., 2) one step later."""
    v = DRAG * v + PUSH * np.clip(force, -1.0, 1.0)
    return np.clip(x + STEP * v, -1.0, 1.0), v


def pay(x: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """The reward (...,) of a place: minus its distance to the goal."""
    return -np.linalg.norm(goal - x, axis=-1)


def start(problem: Problem, seed: int) -> tuple[Message, State]:
    how = "It is a world of forces, not of text: train it on --task pointmass"
    problem.required("start", "goal", by="the environment pointmass", how=how)
    state = {"x": list(problem.meta["start"]), "v": [0.0, 0.0], "goal": list(problem.meta["goal"])}
    return Message("environment", data=observe(*_arrays(state))), state


@environment(start=start)
def pointmass(state: State, turn: Turn) -> tuple[Message, State]:
    """One push. The episode has no end of its own."""
    x, v, goal = _arrays(state)
    # the last row of ids is the action of this turn
    x, v = advance(x, v, np.asarray(turn.ids[-1, :2], np.float64))
    message = Message("environment", data=observe(x, v, goal), reward=float(pay(x, goal)))
    return message, {"x": x.tolist(), "v": v.tolist(), "goal": state["goal"]}


def _arrays(state: State) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(state["x"]), np.array(state["v"]), np.array(state["goal"])
