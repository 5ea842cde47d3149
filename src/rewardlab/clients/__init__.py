"""What is served elsewhere: models behind an OpenAI-compatible address (openai:URL#NAME), and search engines (http://...)."""
