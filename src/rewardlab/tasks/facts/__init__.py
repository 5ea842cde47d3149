"""Questions about facts, answered by looking things up."""
