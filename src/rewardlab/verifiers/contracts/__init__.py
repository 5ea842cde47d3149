"""Contracts of small methods: what they require and ensure, proved by z3."""
