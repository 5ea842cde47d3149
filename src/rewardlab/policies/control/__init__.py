"""Policies of observations and actions."""
