"""Circles to be packed into a square, on a grid."""
