"""Rewards that come from the policy itself."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Score, Trajectory

from .reward import reward


@reward
def likelihood(trajectory: Trajectory) -> Score:
    """Mean log-prob (nats per token, at most 0) that the raw policy gave to the tokens it wrote.

    No verdict where some were never drawn, as in recorded text.
    """
    drawn = trajectory.column("logprobs")[trajectory.mask]
    if not len(drawn):
        return Score(None, why="the policy wrote nothing")
    if np.isnan(drawn).any():
        return Score(None, why="some of these tokens carry no log-probs")
    return Score(float(drawn.mean(dtype=np.float64)), why="mean log-prob")
