"""Policies that denoise."""
