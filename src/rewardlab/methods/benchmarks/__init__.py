"""Benchmarks of rewards: `rewardlab scoreboard RATER --on NAME`."""
