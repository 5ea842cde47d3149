"""Tasks about small programs, which a policy makes up and solves itself."""
