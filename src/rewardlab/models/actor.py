"""Policies for control tasks: small networks from observations to actions, with random weights.

The shapes of observations and actions come from `meta["shape"]` of the task's problems.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.policies.control.actor import Actor, Shape


def warmed(task: Task) -> Actor:
    """The policy that training starts from: random weights, under which all actions are about equally likely."""
    return Actor(_shape(task))


def untrained(task: Task) -> Actor:
    """A tiny policy, for tests."""
    return Actor(_shape(task, hidden=8, layers=1))


def _shape(task: Task, **size: Any) -> Shape:
    shape = task.train[0].meta.get("shape")
    if shape is None:
        raise RewardlabError(f"no actor fits {task.name}: its problems have no meta['shape'] (observation, action, discrete)")
    return replace(Shape(**shape), **size)
