"""Credit assignment: advantages and their baselines."""
