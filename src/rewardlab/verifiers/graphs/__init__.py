"""Graph problems, which may have several right answers."""
