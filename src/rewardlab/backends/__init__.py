"""Adapters that run our recipes on other engines. Each is an optional extra, imported where it is used and nowhere else."""
