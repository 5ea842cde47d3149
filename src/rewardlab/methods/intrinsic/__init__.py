"""Rewards that come from the policy itself."""
