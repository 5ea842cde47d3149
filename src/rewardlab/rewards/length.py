"""Rewards for brevity, and what operators need to reward length by."""

from __future__ import annotations

from rewardlab.core import Trajectory

from .reward import reward


@reward
def length_penalty(trajectory: Trajectory, *, per_token: float = 0.001) -> float:
    """-`per_token` times the number of tokens that the policy sampled: 0 or negative, so it is added."""
    return -per_token * float(trajectory.mask.sum())


@reward
def tokens(trajectory: Trajectory) -> float:
    """How many tokens the policy sampled: for operators, since by itself it pays for length."""
    return float(trajectory.mask.sum())


@reward
def cut_off(trajectory: Trajectory) -> float:
    """1 where a reply reached the limit of its length and has no end, else 0."""
    return float(trajectory.stop == "length")
