"""Attempts at chains of arithmetic, critiques of them, and attempts that are refined after a critique."""
