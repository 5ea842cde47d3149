"""Methods about the environment: many turns, tools, retrieval."""
