"""From rewards to credit, (B, T)."""
