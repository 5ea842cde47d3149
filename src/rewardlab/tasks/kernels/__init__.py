"""Programs to be rewritten so that they need fewer operations."""
