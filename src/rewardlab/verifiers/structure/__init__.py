"""Verifiers of form: JSON, schemas, tags."""
