"""How trajectories come about."""
