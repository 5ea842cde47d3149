"""Judges that write: how one is asked, by published prompts or one's own, and how its judgement is read."""
