"""What was reached by clicking, and whether the reply had said where."""

from __future__ import annotations

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward


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
    """At the end of each reply, 1 where a line before its click is the box that is meant, as the screen shows it, else 0."""
    meta = trajectory.problem.meta
    if not meta.get("targets"):
        return Score(None, why="the problem has no targets")
    wanted = [f"{t} {' '.join(map(str, page[t]))}" for t, page in zip(meta["targets"], meta["screens"], strict=True)]
    pairs = zip(trajectory.ends, trajectory.replies, wanted, strict=False)
    return [(end, float(line in reply.splitlines())) for end, reply, line in pairs]
