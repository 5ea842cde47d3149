"""Objectives turn credit into a loss per unit; weightings add the losses up."""
