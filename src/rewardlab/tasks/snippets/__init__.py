"""Pieces of code without any instructions, made into tasks by running them."""
