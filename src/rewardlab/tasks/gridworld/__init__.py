"""A grid with a goal and a trap."""
