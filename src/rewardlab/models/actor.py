"""Policies for tasks of observations and actions: small networks that have not learnt anything yet.

A task says in its problems' `meta["shape"]` what is observed and what can be done.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.policies.control.actor import Actor, Shape


def warmed(task: Task) -> Actor:
    """What reinforcement and imitation begin with: a policy that prefers nothing."""
    return Actor(_shape(task))


def untrained(task: Task) -> Actor:
    """A tiny one."""
    return Actor(_shape(task, hidden=8, layers=1))


def _shape(task: Task, **size: Any) -> Shape:
    known = task.train[0].meta.get("shape")
    if known is None:
        raise RewardlabError(f"no actor fits {task.name}: its problems have no meta['shape'] (observation, action, discrete)")
    return replace(Shape(**known), **size)
