"""Small tools with nothing of a domain: files, saving, devices, progress."""
