"""Choose one answer from scored trajectories."""
