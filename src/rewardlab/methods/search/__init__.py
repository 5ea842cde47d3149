"""Methods that search or select at test time, or learn to: where the next tokens are spent, and what is made of what was found."""
