"""Search at test time: steps or partial replies that a reward scores decide where the next tokens are spent."""
