"""Solutions of questions about a table, to be inspected step by step with a tool."""
