"""From scored trajectories to one answer."""
