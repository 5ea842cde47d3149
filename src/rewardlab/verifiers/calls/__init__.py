"""Function calls, compared with gold calls and with the schemas of the tools."""
