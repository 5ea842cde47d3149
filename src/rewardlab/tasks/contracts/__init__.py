"""Small methods, and what they require and ensure."""
