"""Comparisons: methods of one family on the same problems and one budget, decided together, and the pages that show them."""
