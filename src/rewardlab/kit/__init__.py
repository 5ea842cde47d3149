"""Tools that every part may use: reading answers, splitting steps, sources of problems."""
