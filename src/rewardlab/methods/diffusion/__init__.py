"""Policies that denoise: flows and diffusion models."""
