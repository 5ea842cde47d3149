"""Benchmarks of rewards: what they ask, who answers, and what comes out.

A benchmark (`benchmark.py`) is a file in `methods/benchmarks/`: how its published rows are read, and its figures as its paper has
them. A rater (`raters/`) is anything that says which replies, steps or options are better: a reward model, a process reward model,
a judge, a formula, or the published outputs of others. `run.py` puts the one to the other; `figures.py` has the intervals.
"""
