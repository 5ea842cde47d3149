"""Rewards from models that were trained to score."""
