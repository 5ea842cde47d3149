"""Function calls compared with gold calls and schemas."""
