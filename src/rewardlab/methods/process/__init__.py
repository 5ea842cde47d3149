"""Process rewards: learning from each step, not only from the answer."""
