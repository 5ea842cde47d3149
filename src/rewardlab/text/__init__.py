"""Reading text: the answer that a reply states, code blocks, JSON, words, reasoning steps."""
