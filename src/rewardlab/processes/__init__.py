"""Functions called in processes of their own."""
