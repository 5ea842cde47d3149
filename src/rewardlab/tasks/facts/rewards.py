"""Rewards that know the gold searches of a question."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.searches import query_of


@reward(steps=True)
def gold_searches(trajectory: Trajectory) -> list[tuple[int, float]] | Score:
    """At the end of each reply that searches: 1 if its search is the next of meta["searches"], else 0."""
    left = list(trajectory.problem.meta.get("searches") or [])
    if not left:
        return Score(None, why="the problem has no gold searches")
    steps = []
    for end, reply in zip(trajectory.ends, trajectory.replies, strict=True):
        query = query_of(reply)
        if query is not None:
            found = bool(left) and query == left[0]
            left = left[found:]
            steps.append((end, float(found)))
    return steps or Score(None, why="the episode has no search")
