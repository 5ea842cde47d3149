"""Credit assignment: from rewards to advantages, both (B, T)."""
