"""Who gets the credit: advantages and their baselines."""
