"""The lean policy: Llama, Mistral, Qwen2 and Qwen3 checkpoints."""
