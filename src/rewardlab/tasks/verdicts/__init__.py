"""Solutions to be judged step by step."""
