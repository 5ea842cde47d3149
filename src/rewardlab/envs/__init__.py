"""Environments that serve many tasks: they answer the policy's actions."""
