"""Rewards for brevity."""

from __future__ import annotations

from rewardlab.core import Trajectory

from .reward import reward


@reward
def length_penalty(trajectory: Trajectory, *, per_token: float = 0.001) -> float:
    """Minus `per_token` for every token that the policy wrote; never above 0."""
    return -per_token * float(trajectory.mask.sum())
