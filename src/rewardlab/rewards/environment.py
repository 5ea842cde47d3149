"""Rewards from the environment."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.core.domain import PositiveFloat

from .reward import reward


@reward(steps=True)
def paid(trajectory: Trajectory) -> list[tuple[int, float]]:
    """Every reward of the environment, at the position before the message that carried it."""
    return trajectory.paid


@reward(steps=True)
def found_labels(trajectory: Trajectory) -> list[tuple[int, float]] | Score:
    """What a rollout found out of the steps of a reply while it sampled, as `divided_tree` does; no verdict where it found nothing.

    It is carried as rewards of an environment are.
    """
    return trajectory.paid or Score(None, why="the rollout says nothing of its steps")


@reward
def calls_made(trajectory: Trajectory, *, each: float = 0.1, most: PositiveFloat = 1.0) -> float:
    """`each` for every reply that the environment answered, which all but the last are; `most` at the most."""
    return min(each * max(0, len(trajectory.ends) - 1), most)
