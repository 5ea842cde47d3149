"""Rollouts: they sample, record or search the trajectories of a step."""
