"""What is sampled, and when."""
