"""Choose the reply with the best score."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Trajectory, select


@select
def best(group: Group, scores: list[Score], run: Run) -> Trajectory:
    """The reply with the highest total score, the first of equals; replies without a verdict come last."""
    totals = [-float("inf") if s.total is None else s.total for s in scores]
    return group[totals.index(max(totals))]
