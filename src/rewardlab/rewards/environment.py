"""Rewards from the environment."""

from __future__ import annotations

from rewardlab.core import Trajectory

from .reward import reward


@reward(steps=True)
def paid(trajectory: Trajectory) -> list[tuple[int, float]]:
    """Every reward of the environment, at the position before the message that carried it."""
    return trajectory.paid
