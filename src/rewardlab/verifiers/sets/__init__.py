"""Lists of items, compared as sets or as rankings."""
