"""Small graphs whose nodes carry numbers, and in each a module of nodes that belong together."""
