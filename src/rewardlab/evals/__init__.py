"""Measures of a policy, or of a reward, on held-out problems."""
