"""Environments of the package `verifiers`, by name, judged by their own rubrics."""
