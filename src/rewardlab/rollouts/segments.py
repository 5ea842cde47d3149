"""Recorded segments of episodes: observations, actions and rewards."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Message, Problem, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError


@rollout(rows=lambda fields: len(fields))
def segments(problems: list[Problem], run: Run, *, fields: tuple[str, ...] = ("chosen", "rejected")) -> list[Group]:
    """One row per field of `problem.meta`, in order, written as the policy's decisions and tagged with the field's name.

    A field holds observations (T+1, o), actions (T, a) and rewards (T,); no action follows the last observation.
    """
    rows = [(p, f) for p in problems for f in fields]
    for p, f in rows:
        if f not in p.meta:
            raise RewardlabError(f"problem {p.question[:60]!r} has no segment {f!r}; it has: {', '.join(p.meta) or 'nothing'}")
    data = [p.meta[f] for p, f in rows]
    done = [Trajectory(p, path=(i % len(fields),), tag=f) for i, (p, f) in enumerate(rows)]
    for t in range(max(len(d["actions"]) for d in data) + 1):
        here = [i for i, d in enumerate(data) if t < len(d["observations"])]
        messages = [(Message("environment", data=data[i]["observations"][t], reward=_reward_before(data[i], t)),) for i in here]
        for i, row in zip(here, run.policy.read([done[i] for i in here], messages), strict=True):
            done[i] = row
        here = [i for i in here if t < len(data[i]["actions"])]
        for i, row in zip(here, run.policy.write([done[i] for i in here], [data[i]["actions"][t] for i in here]), strict=True):
            done[i] = row
    done = [replace(row, stop="end") for row in done]
    return [done[i : i + len(fields)] for i in range(0, len(done), len(fields))]


def _reward_before(segment: dict, t: int) -> float | None:
    return float(segment["rewards"][t - 1]) if t else None
