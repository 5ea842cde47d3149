"""Rewards: functions that score trajectories, and operators that combine them."""
