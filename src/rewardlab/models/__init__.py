"""Models by name: checkpoints, and the small policies that come with tasks.

Each module KIND.py of small policies that are not text has two functions. `warmed(task)` returns the policy for a task of this
kind, trained once and cached. `untrained(task)` returns a tiny one with random weights, for tests. A task names its kind in
`Task.model`.
"""
