"""A grid with a goal that pays 1 and ends the episode, and a trap that pays nothing.

    problem.meta: size, start, goal, trap; places are [row, column].    actions: 0 up, 1 down, 2 left, 3 right

The observation is the agent's place and the offsets from it to goal and trap, in units of the grid's side. A step off the grid
leaves the agent where it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rewardlab.core import Message, Problem, Turn, environment

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
OBSERVED = 6

State = dict[str, Any]


def observe(state: State) -> np.ndarray:
    """(6,) agent, goal - agent, trap - agent."""
    at, goal, trap = (np.array(state[k], np.float32) for k in ("at", "goal", "trap"))
    return np.concatenate((at, goal - at, trap - at)) / state["size"]


def start(problem: Problem, seed: int) -> tuple[Message, State]:
    how = "It is a world of moves, not of text: train it on --task gridworld"
    problem.required("size", "start", "goal", "trap", by="the environment gridworld", how=how)
    state = {k: problem.meta[k] for k in ("size", "goal", "trap")} | {"at": list(problem.meta["start"])}
    return Message("environment", data=observe(state)), state


@environment(start=start)
def gridworld(state: State, turn: Turn) -> tuple[Message, State]:
    """One move. The move that reaches the goal is rewarded by 1, every other by 0."""
    row_step, column_step = MOVES[int(turn.ids[-1, 0])]
    # a step off the grid is clipped to its edge
    row, column = (min(max(x + step, 0), state["size"] - 1) for x, step in zip(state["at"], (row_step, column_step), strict=True))
    state = state | {"at": [row, column]}
    if state["at"] == list(state["goal"]):
        return Message("environment", text="goal", reward=1.0, last=True), state
    return Message("environment", data=observe(state), reward=0.0), state
