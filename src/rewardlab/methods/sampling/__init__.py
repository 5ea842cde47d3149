"""Which problems and replies are sampled, and when."""
