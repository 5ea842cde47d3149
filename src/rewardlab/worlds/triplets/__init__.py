"""Self-play tasks about small programs: a policy proposes and solves them."""
