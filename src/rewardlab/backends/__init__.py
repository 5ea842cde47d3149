"""Engines of others that run our recipes. Each is an optional extra, imported where it is used and nowhere else."""
