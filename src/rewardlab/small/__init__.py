"""Small policies for tasks that are not text, each made once for its task and cached.

A module KIND.py has `warmed(task)`, the policy that a task of this kind is played with, and `untrained(task)`, a tiny one with
random weights for tests. A task names its kind in `Task.model`.
"""
