"""The embedded trainer. It knows no method."""
