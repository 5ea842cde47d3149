"""Policies: the lean Llama, any transformers model, actors for control, denoisers."""
