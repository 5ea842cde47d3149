"""Standard methods, with which the others are compared."""
