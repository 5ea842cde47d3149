"""Rewards computed from the policy's own probabilities."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Score, Trajectory

from .reward import reward


@reward
def likelihood(trajectory: Trajectory) -> Score:
    """Mean log-prob (nats per token, at most 0) that the raw policy gave to the tokens it sampled.

    No verdict if some tokens have no log-probs, as in recorded text.
    """
    logprobs = trajectory.column("logprobs")[trajectory.mask]
    if not len(logprobs):
        return Score(None, why="the policy wrote nothing")
    if np.isnan(logprobs).any():
        return Score(None, why="some of these tokens have no log-probs")
    # float64: the sum of thousands of float32 numbers loses digits
    return Score(float(logprobs.mean(dtype=np.float64)), why="mean log-prob")
