"""Questions about facts, and searches that went wrong."""
