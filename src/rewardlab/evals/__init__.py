"""How good a policy is, and how good a reward."""
