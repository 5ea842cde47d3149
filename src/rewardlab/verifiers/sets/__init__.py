"""Lists compared as sets and as rankings."""
