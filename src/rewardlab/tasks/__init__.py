"""Tasks: problems, generated or loaded, each with a held-out test set and the name of its verifier. One file, one task. One file,
one task.
"""
