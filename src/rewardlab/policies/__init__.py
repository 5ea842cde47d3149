"""Models that decide: the lean Llama, any transformers model."""
