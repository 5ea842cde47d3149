"""Programs whose runs are traced, and questions about every step of them."""
