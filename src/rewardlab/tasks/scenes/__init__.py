"""Pictures of shapes, and boxes around them."""
