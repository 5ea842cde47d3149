"""Questions about small graphs, of many kinds and four tiers of difficulty."""
