"""Questions about people, hidden behind chains of keys."""
