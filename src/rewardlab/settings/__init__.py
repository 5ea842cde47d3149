"""Settings of functions: which values they may have, how they are written, checked, described and saved."""
