"""Texts with hidden names, which must be found by searching."""
