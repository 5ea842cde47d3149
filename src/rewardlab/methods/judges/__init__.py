"""Rewards from models that judge in words."""
