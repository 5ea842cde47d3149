"""Programs of a few lines, of which few have a line that is not what was wanted."""
