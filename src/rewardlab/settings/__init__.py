"""Settings of functions: domains, checks, descriptions and saving."""
