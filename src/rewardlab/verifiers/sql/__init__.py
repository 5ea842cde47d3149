"""SQL queries, judged by the rows that they return."""
