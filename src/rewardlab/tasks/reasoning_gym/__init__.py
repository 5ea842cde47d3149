"""The generators of the package reasoning-gym, judged by their own scorers."""
