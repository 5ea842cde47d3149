"""Denoising that follows the ODE and branches at one step: what a group differs by is that step alone."""

from __future__ import annotations

from dataclasses import replace

import torch

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout
from rewardlab.errors import RewardlabError


@rollout
def branching(problems: list[Problem], run: Run, *, n: int = 8, points: int = 10) -> list[Group]:
    """For each problem one deterministic path, and a group of n for each of `points` of its steps, chosen at random.

    The rows of a group share noise and path up to their step, which is drawn, and follow the ODE from there on. So the rewards
    of a group differ by what that one decision led to. A path's shared part is computed once.
    """
    if points < 1:
        raise RewardlabError(f"branching: points is a number of steps from 1 up, not {points}")
    policy, rng = run.policy, run.rng("rollout")
    asked = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    paths = policy.extend(asked, Sampling(run.max_new, temperature=0.0), rng)
    stems = []
    for path, start in zip(paths, asked, strict=True):
        first = len(start) + 1
        chosen = torch.randperm(len(path) - first, generator=rng)[:points].sort().values
        stems += [replace(path.cut(first + k), path=(k,)) for k in chosen.tolist()]
    rows = [replace(stem, path=(*stem.path, i)) for stem in stems for i in range(n)]
    drawn = policy.extend(rows, Sampling(1), rng)
    done = policy.extend(drawn, Sampling(run.max_new, temperature=0.0), rng)
    return [done[i : i + n] for i in range(0, len(done), n)]
