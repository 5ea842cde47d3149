"""Policies that run through transformers."""
