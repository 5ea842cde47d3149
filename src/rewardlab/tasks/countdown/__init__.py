"""Countdown: numbers to be combined into an expression with a given value."""
