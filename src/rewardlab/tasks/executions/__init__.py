"""Traced runs of programs, and questions about each step."""
