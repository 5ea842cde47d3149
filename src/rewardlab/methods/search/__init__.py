"""Methods that search or select at test time, and train nothing."""
