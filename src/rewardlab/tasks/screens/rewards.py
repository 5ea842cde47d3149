"""What was reached by clicking, and whether the reply had said where."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward

from .language import last_box


@reward
def all_clicked(trajectory: Trajectory) -> Score:
    """1 where every one of the problem's targets was hit."""
    targets = trajectory.problem.meta.get("targets")
    if not targets:
        return Score(None, why="the problem has no targets")
    hit = sum(x for _, x in trajectory.paid)
    return Score(float(hit == len(targets)), why=f"{hit:g} of {len(targets)} targets")


@reward(steps=True)
def named_first(trajectory: Trajectory) -> list[tuple[int, float]] | Score:
    """At the end of each reply, 1 where the last box that it names before its click is the one that is meant, else 0.

    Named: its label and its four numbers in one line, however these are written.
    """
    meta = trajectory.problem.meta
    if not meta.get("targets"):
        return Score(None, why="the problem has no targets")
    wanted = [(target, page, list(page[target])) for target, page in zip(meta["targets"], meta["screens"], strict=True)]
    pairs = zip(trajectory.ends, trajectory.replies, wanted, strict=False)
    return [(end, float(last_box(reply, page) == (target.lower(), box))) for end, reply, (target, page, box) in pairs]
