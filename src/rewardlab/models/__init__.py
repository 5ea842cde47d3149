"""Models by name: checkpoints, and the small policies that tasks are played with.

A module KIND.py of the small policies that are not text has `warmed(task)`, the policy that a task of this kind is played with,
made once and cached, and `untrained(task)`, a tiny one with random weights for tests. A task names its kind in `Task.model`.
"""
