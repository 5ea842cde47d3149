"""The files of a run: metrics, rollouts, trackers."""
