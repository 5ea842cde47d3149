"""Rewards from the environment."""

from __future__ import annotations

from rewardlab.core import Trajectory

from .reward import reward


@reward(steps=True)
def paid(trajectory: Trajectory) -> list[tuple[int, float]]:
    """Every reward that a message of the environment carried, on the last decision before it."""
    return trajectory.paid
