"""Rewards that come from the policy itself."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Score, Trajectory

from .reward import reward


@reward
def likelihood(trajectory: Trajectory) -> Score:
    """Mean log-prob (nats per token, at most 0) that the raw policy gave to the tokens it wrote.

    No verdict where some have no log-probs, as in recorded text.
    """
    logprobs = trajectory.column("logprobs")[trajectory.mask]
    if not len(logprobs):
        return Score(None, why="the policy wrote nothing")
    if np.isnan(logprobs).any():
        return Score(None, why="some of these tokens have no log-probs")
    return Score(float(logprobs.mean(dtype=np.float64)), why="mean log-prob")
