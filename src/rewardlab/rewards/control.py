"""Rewards of episodes of observations and actions."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rewardlab.core import Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward


@reward
def earned(trajectory: Trajectory) -> float:
    """The return: the sum of the environment's rewards, as one number for the episode."""
    return float(sum(r for _, r in trajectory.paid))


@reward(steps=True)
def guidance(trajectory: Trajectory, *, toward: Literal["goal", "trap"] = "goal", scale: float = 0.3) -> list[tuple[int, float]]:
    """A hand-made auxiliary reward for each move on the gridworld.

    toward="goal": `scale` for every move towards the goal, -`scale` for every move away.  "trap": `scale` for every move
    made at the trap or next to it, without limit.  Distances are counted in moves, before the action.
    """
    if toward not in ("goal", "trap"):
        raise RewardlabError(f"guidance: toward must be 'goal' or 'trap', not {toward!r}")
    # an observation is (position, offset to the goal, offset to the trap) / size, two numbers each
    first = 2 if toward == "goal" else 4
    size, decided = trajectory.problem.meta["size"], np.flatnonzero(trajectory.mask)
    # the position before a decision holds the observation that it answers; rounded, since offsets / size are inexact
    distance = np.abs(trajectory.ids[decided - 1, first : first + 2] * size).sum(1).round()  # (moves,)
    if toward == "trap":
        return [(int(t), scale * float(d <= 1)) for t, d in zip(decided, distance, strict=True)]
    after = np.append(distance[1:], _final_distance(trajectory, distance))
    return [(int(t), scale * float(a - b)) for t, a, b in zip(decided, distance, after, strict=True)]


def _final_distance(trajectory: Trajectory, distance: np.ndarray) -> float:
    """The distance after the last move: 0 at the goal; the last known distance if the episode ran out of time."""
    return 0.0 if trajectory.stop == "end" else float(distance[-1])
