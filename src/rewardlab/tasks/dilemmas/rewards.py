"""How a player of dilemmas behaved, whatever it was paid."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward

from .environment import move_of


@reward
def cooperates(trajectory: Trajectory) -> Score:
    """The share of a player's rounds in which it cooperated."""
    moves = trajectory.problem.meta.get("moves")
    if not moves:
        return Score(None, why="the problem has no moves")
    played = [move_of(reply, moves) == 0 for reply in trajectory.replies]
    return Score(sum(played) / len(played) if played else 0.0)
