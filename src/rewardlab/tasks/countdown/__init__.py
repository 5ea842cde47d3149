"""Numbers to be joined into an expression with a given value."""
