"""Measures of a policy or a reward on held-out problems."""
