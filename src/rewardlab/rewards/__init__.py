"""Rewards: what a trajectory earned, and why."""
