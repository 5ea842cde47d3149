"""Losses: methods that change how advantages become an update."""
