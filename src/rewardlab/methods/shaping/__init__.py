"""Rewards bent towards shorter replies, fewer calls, or another side goal beside being right."""
