"""Environments of the package `verifiers` (an optional extra): its own programs play, and the policy replies to them."""
