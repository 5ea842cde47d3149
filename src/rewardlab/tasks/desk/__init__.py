"""Questions at a desk, each answered yes or no by what the right call of a tool says."""
