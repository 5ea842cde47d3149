"""Wishes, replies to them, and how people react."""
