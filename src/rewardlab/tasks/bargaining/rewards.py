"""What an utterance does, which nobody in the talk can see."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward

from .problems import kind_of, value


@reward
def social_value(trajectory: Trajectory) -> Score:
    """What the utterance does to goal, relationship and knowledge, from 0 to 1; 0 for one that nobody says here."""
    kind = kind_of(trajectory.reply)
    return Score(0.0, why="no such utterance") if kind is None else Score(value(kind), why=kind)
