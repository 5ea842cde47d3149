"""Verifiers: rewards that compare a reply with a gold answer."""
