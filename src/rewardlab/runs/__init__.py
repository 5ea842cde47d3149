"""What a run leaves behind: metrics, rollouts, trackers."""
