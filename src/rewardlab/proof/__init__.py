"""Whether what methods promise comes out: paired runs, intervals, verdicts, and the tables made of them."""
