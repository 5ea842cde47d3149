"""What answers back to a policy."""
