"""Tasks: problems, made or loaded, each with a held-out test set and the name of its verifier. One file, one task."""
