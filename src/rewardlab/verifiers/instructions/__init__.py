"""Instructions that a program can verify."""
