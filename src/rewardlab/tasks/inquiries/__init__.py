"""Searches through facts with written thoughts, and pairs of recorded episodes of which one is better."""
