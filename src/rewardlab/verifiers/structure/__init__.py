"""Verifiers of structured output: JSON, JSON schemas, tags."""
