"""Models behind an OpenAI-compatible address, wherever a model may stand: openai:URL#NAME."""
