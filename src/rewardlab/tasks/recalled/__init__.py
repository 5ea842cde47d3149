"""Questions about facts that a policy has learnt by heart, some of them wrongly."""
