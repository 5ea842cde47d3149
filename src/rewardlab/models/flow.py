"""The small denoiser of a task of points, trained by flow matching on an error-prone teacher's points."""

from __future__ import annotations

import random

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Task, seed_of, stream
from rewardlab.errors import RewardlabError
from rewardlab.models.fingerprint import fingerprint
from rewardlab.policies.diffusion.denoiser import Denoiser
from rewardlab.util.files import cached
from rewardlab.util.progress import Bar

MAKERS = ("models/flow.py", "policies/diffusion/denoiser.py")
POOL, STEPS, ROWS, LR = 40_000, 3000, 512, 5e-3
"""Demonstrated points; optimiser steps, points in each, and learning rate of the warm-up."""


def warmed(task: Task) -> Denoiser:
    """The denoiser for a task. The first call on a machine trains it, which takes some seconds."""
    name = f"flow-{task.name}-{fingerprint([task.name], MAKERS, task.source)}"
    return Denoiser.load(cached(name, lambda folder: _warm_up(task).save(folder)), "cpu")


def untrained(task: Task) -> Denoiser:
    """A small denoiser with random weights, for tests."""
    return Denoiser({"hidden": 16, "layers": 2}, torch.device("cpu")).initialise(torch.Generator().manual_seed(0))


def _warm_up(task: Task) -> Denoiser:
    """Regress v(x_t, t) on noise - data, where x_t = (1 - t) data + t noise (Lipman et al. 2023, arXiv:2210.02747)."""
    rng = stream("flow matching", task.name)
    policy = Denoiser({}, torch.device("cpu")).initialise(rng)
    condition, data = _pool(task)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=LR, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    with Bar(f"training the small denoiser for {task.name} (once)", STEPS) as bar:
        for _ in range(STEPS):
            rows = torch.randint(len(data), (ROWS,), generator=rng)
            x, noise, t = data[rows], torch.randn((ROWS, data.shape[1]), generator=rng), torch.rand(ROWS, generator=rng)
            # x_t; its derivative by t is noise - x, the target below
            mixed = torch.lerp(x, noise, t[:, None])
            loss = (policy.model(mixed, t, condition[rows]) - (noise - x)).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            bar.advance(f"loss {float(loss.detach()):.3f}")
    return policy


def _pool(task: Task) -> tuple[Tensor, Tensor]:
    """(POOL, size) conditions, and (POOL, size) the teacher's point for each."""
    if task.demonstrate is None:
        raise RewardlabError(f"the task {task.name} has no teacher to train a denoiser on; give a checkpoint with --model")
    pairs = []
    for i in range(POOL):
        problem = task.train[seed_of("warm-up", i) % (1 << 40)]
        point = task.demonstrate(problem, random.Random(seed_of("teacher", task.name, i)))
        pairs.append((problem.prompt[-1].data, point))
    conditions, points = zip(*pairs, strict=True)
    return torch.from_numpy(np.asarray(conditions, np.float32)), torch.from_numpy(np.asarray(points, np.float32))
