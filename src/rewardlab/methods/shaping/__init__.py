"""Rewards with a side goal besides the right answer: shorter replies, fewer tool calls."""
