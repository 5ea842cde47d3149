"""Worlds: small procedural tasks with exact answers, one a file: problems, an error-prone teacher, environment and rewards."""
