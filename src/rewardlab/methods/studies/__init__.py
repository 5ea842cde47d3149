"""Analyses: how far rewards, and measures of them, can be trusted."""
