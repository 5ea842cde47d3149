"""Hostile programs, by what they try. Each is to define `solve(x)`, whose answers nobody can guess."""
