"""Worlds: small, procedural, exact; one a file, with its problems, its careless teacher, and what answers and pays in it."""
