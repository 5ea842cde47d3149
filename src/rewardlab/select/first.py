"""Take the reply that the rollout puts first."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Trajectory, select


@select
def first(group: Group, scores: list[Score], run: Run) -> Trajectory:
    """The first reply: for searches that have valued their replies themselves, and put the best one first."""
    return group[0]
