"""Rollouts: they produce the trajectories of a step by sampling, by search, or from recorded data."""
