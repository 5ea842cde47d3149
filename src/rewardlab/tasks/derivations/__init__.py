"""Derivations in propositional logic, whose every line a small program can check."""
