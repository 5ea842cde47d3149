"""Learning from each step, not only from the answer."""
