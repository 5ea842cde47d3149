"""Denoising that follows the ODE and branches at one step: the rows of a group differ by that step alone."""

from __future__ import annotations

from dataclasses import replace

import torch

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout
from rewardlab.core.domain import PositiveInt


@rollout(rows=lambda n, points: n * points, groups=lambda n, points: points)
def one_step_branches(problems: list[Problem], run: Run, *, n: PositiveInt = 8, points: PositiveInt = 10) -> list[Group]:
    """For each problem, one deterministic denoising path, `points` steps of it chosen at random, and a group of n rows for each.

    The rows of a group share the initial noise and the path up to the chosen step. That step is sampled, and the ODE is followed
    from there on, so the rewards of a group differ by the effect of one decision. The shared part of a path is computed once.
    """
    policy, rng = run.policy, run.rng("rollout")
    prompts = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    paths = policy.extend(prompts, Sampling(run.max_new, temperature=0.0), rng)
    stems = []
    for path, start in zip(paths, prompts, strict=True):
        # the position after the prompt holds the initial noise, which is not a step
        first = len(start) + 1
        # sorted: the groups of a path come in the order of its steps
        chosen = torch.randperm(len(path) - first, generator=rng)[:points].sort().values
        # path=(k,) keeps the rows of different steps apart, and (k, i) those of one step
        stems += [replace(path.cut(first + k), path=(k,)) for k in chosen.tolist()]
    rows = [replace(stem, path=(*stem.path, i)) for stem in stems for i in range(n)]
    # the one step that is sampled; temperature 0 means the ODE
    branched = policy.extend(rows, Sampling(1), rng)
    done = policy.extend(branched, Sampling(run.max_new, temperature=0.0), rng)
    return [done[i : i + n] for i in range(0, len(done), n)]
