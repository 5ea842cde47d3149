"""Prisoner's dilemmas in words, played several times in a row by two players."""
