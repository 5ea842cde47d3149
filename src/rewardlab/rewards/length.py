"""Rewards for brevity."""

from __future__ import annotations

from rewardlab.core import Trajectory

from .reward import reward


@reward
def length_penalty(trajectory: Trajectory, *, per_token: float = 0.001) -> float:
    """-`per_token` times the number of tokens that the policy sampled: 0 or negative, so it is added."""
    return -per_token * float(trajectory.mask.sum())
