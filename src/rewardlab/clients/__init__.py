"""Models behind an OpenAI-compatible address: openai:URL#NAME."""
