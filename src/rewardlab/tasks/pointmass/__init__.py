"""A point mass to be steered."""
