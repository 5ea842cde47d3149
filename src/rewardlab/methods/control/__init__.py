"""Rewards that act on the world: gridworlds, motor commands."""
