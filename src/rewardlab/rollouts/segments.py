"""Recorded segments of episodes: observations, actions and rewards."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Message, Problem, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError


def missing(segment: dict) -> list[str]:
    """What a segment lacks."""
    return [name for name in ("observations", "actions", "rewards") if not isinstance(segment.get(name), list | np.ndarray)]


@rollout(rows=lambda fields: len(fields))
def segments(problems: list[Problem], run: Run, *, fields: tuple[str, ...] = ("chosen", "rejected")) -> list[Group]:
    """One row per field of `problem.meta`, in order, written as the policy's decisions and tagged with the field's name.

    A field holds a dict of observations (T+1, o), actions (T, a) and rewards (T,); no action follows the last observation.
    """
    rows = [(p, f) for p in problems for f in fields]
    for p, f in rows:
        if f not in p.meta:
            raise RewardlabError(f"problem {p.question[:60]!r} has no segment {f!r}; it has: {', '.join(p.meta) or 'nothing'}")
        if not isinstance(p.meta[f], dict) or missing(p.meta[f]):
            raise RewardlabError(
                f"segments of episodes are learnt from here, and not texts: {f!r} of problem {p.question[:60]!r} is to be an "
                "object with observations (T+1 rows), actions (T rows) and rewards (T numbers), as --task pointmass has; "
                "for texts, use dpo"
            )
    data = [p.meta[f] for p, f in rows]
    done = [Trajectory(p, path=(i % len(fields),), tag=f) for i, (p, f) in enumerate(rows)]
    # + 1: the last observation, which no action follows
    for t in range(max(len(d["actions"]) for d in data) + 1):
        # segments may differ in length; each time step reads and writes all rows that still have one
        active = [i for i, d in enumerate(data) if t < len(d["observations"])]
        messages = [(Message("environment", data=data[i]["observations"][t], reward=_reward_before(data[i], t)),) for i in active]
        for i, row in zip(active, run.policy.read([done[i] for i in active], messages), strict=True):
            done[i] = row
        active = [i for i in active if t < len(data[i]["actions"])]
        for i, row in zip(
            active, run.policy.write([done[i] for i in active], [data[i]["actions"][t] for i in active]), strict=True
        ):
            done[i] = row
    done = [replace(row, stop="end") for row in done]
    return [done[i : i + len(fields)] for i in range(0, len(done), len(fields))]


def _reward_before(segment: dict, t: int) -> float | None:
    """The reward of action t - 1, which comes with observation t; None for the first observation."""
    return float(segment["rewards"][t - 1]) if t else None
