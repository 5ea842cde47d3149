"""A reward that takes another column as the gold answer."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Run, Score, Scores
from rewardlab.rewards.reward import Reward, reward


@reward(over="groups")
def with_answer(groups: list[Group], run: Run, *, inner: Reward, column: str) -> Scores:
    """The reward `inner` with another column of the problem as its gold answer; no verdict where the column is missing."""
    # each reply on its own: the groups of a step may mix problems that have the column with others that have not
    known = [[t for t in group if t.problem.meta.get(column) is not None] for group in groups]
    changed = [[replace(t, problem=replace(t.problem, answer=t.problem.meta[column])) for t in group] for group in known]
    scores = [iter(row) for row in inner(changed, run)]
    missing = Score(None, why=f"the problem has no column {column!r}")
    return [
        [missing if t.problem.meta.get(column) is None else next(row) for t in group]
        for group, row in zip(groups, scores, strict=True)
    ]
