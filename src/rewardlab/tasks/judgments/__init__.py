"""Replies to be judged against a gold answer: right, wrong, or no answer at all."""
