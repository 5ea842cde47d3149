"""Reading text: stated answers, code blocks, JSON, words, steps."""
