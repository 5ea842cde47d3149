"""Chains of arithmetic, each told in two ways."""
