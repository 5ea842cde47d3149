"""Policies that read images."""
