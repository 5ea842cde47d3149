"""From credit to a loss, and how losses add up."""
