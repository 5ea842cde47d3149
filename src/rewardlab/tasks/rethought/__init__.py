"""Chains of arithmetic that are thought through carelessly, and then answered with more care."""
