"""Queries judged by what they return."""
