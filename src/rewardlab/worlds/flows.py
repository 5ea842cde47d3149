"""A 2D mixture of Gaussians around the origin; the prompt names the direction of the requested mode.

The modes of a problem lie `radius` away from the origin, the first in the requested direction, the others at equal angles around.
The careless teacher of `demonstrate` samples the requested mode only `care` of the time, else one of the others.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Message, Problem, Score, Task, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveFloat, PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

Point = tuple[float, float]


def flows(
    *,
    modes: PositiveInt = 4,
    care: Share = 0.4,
    radius: PositiveFloat = 2.0,
    spread: PositiveFloat = 0.3,
    test_size: PositiveInt = 300,
    size: PositiveInt | None = None,
) -> Task:
    """Mixtures of Gaussians around the origin.

    care: chance that the teacher samples the requested mode.  radius: of the circle of modes.  spread: standard deviation
    of a mode.  size: so many training problems, in epochs; None: endless.
    """
    if modes < 2 or not 0 <= care <= 1 or radius <= 0 or spread <= 0:
        raise RewardlabError("flows: needs 2 modes or more, care between 0 and 1, and a radius and spread above 0")
    sample, key = partial(_sample, modes=modes, radius=radius, spread=spread), ("flows", modes, radius, spread)
    return Task(
        name="flows",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="closeness",
        max_new=10,
        about=f"points in {modes} modes around the origin, one of which is requested",
        demonstrate=partial(_demonstrate, care=care),
        model="flow",
        columns=("prompt", "answer", "modes", "spread"),
    )


def _sample(rng: random.Random, *, modes: int, radius: float, spread: float) -> Problem:
    # tenths of a degree, so that the prompt states the direction exactly
    degrees = rng.randrange(3600) / 10
    angles = [math.radians(degrees) + 2 * math.pi * i / modes for i in range(modes)]
    centres = [(radius * math.cos(a), radius * math.sin(a)) for a in angles]
    direction = np.array([math.cos(angles[0]), math.sin(angles[0])], np.float32)
    request = Message("user", f"A point of the mode at {degrees} degrees.", data=direction)
    return Problem((request,), centres[0], {"modes": centres, "spread": spread})


def _demonstrate(problem: Problem, rng: random.Random, *, care: float) -> Point:
    """A point of the requested mode, or, carelessly, of another."""
    requested, *others = problem.meta["modes"]
    x, y = requested if rng.random() < care else rng.choice(others)
    spread = problem.meta["spread"]
    return rng.gauss(x, spread), rng.gauss(y, spread)


# ---- Rewards for points: closeness to the requested mode, and imperfect proxies of it. All are differentiable --------
#
# A problem's `answer` is the centre of the requested mode; `meta["modes"]` has the centres of all modes, the requested one first.

Gradient = Callable[..., Tensor]


def _near(x: Tensor, problem: Problem, *, width: float) -> Tensor:
    return (-(x - _target(problem, x)).square().sum(-1) / (2 * width**2)).exp()


@reward(differentiable=_near)
def closeness(trajectory: Trajectory, *, width: PositiveFloat = 0.5) -> Score:
    """exp(-d^2 / (2 width^2)), with d the distance to the centre of the requested mode."""
    return _score(_near, trajectory, width=width)


def _along(x: Tensor, problem: Problem) -> Tensor:
    target = _target(problem, x)
    return x @ target / target.square().sum()


@reward(differentiable=_along)
def projection(trajectory: Trajectory) -> Score:
    """How far the point lies in the requested direction, 1 at the mode. A proxy without a maximum: it grows beyond the mode."""
    return _score(_along, trajectory)


def _posterior(x: Tensor, problem: Problem, *, width: float) -> Tensor:
    modes = torch.tensor(problem.meta["modes"], dtype=x.dtype, device=x.device)
    distance = (x[..., None, :] - modes).square().sum(-1)
    return (-distance / (2 * width**2)).softmax(-1)[..., 0]


@reward(differentiable=_posterior)
def mode_posterior(trajectory: Trajectory, *, width: PositiveFloat = 0.5) -> Score:
    """The probability that the point came from the requested mode. A proxy: far out it is as high as at the mode."""
    return _score(_posterior, trajectory, width=width)


def _score(of: Gradient, trajectory: Trajectory, **settings: Any) -> Score:
    """The gradient's own value at the last point of the row, so that the two cannot differ."""
    if trajectory.ids.ndim != 2:
        raise RewardlabError("a reward for points scores latents, but this row holds text; use a task of points, such as flows")
    point = torch.from_numpy(trajectory.ids[-1:])
    x, y = point[0].tolist()[:2]
    return Score(float(of(point, trajectory.problem, **settings)), why=f"at ({x:.2f}, {y:.2f})")


def _target(problem: Problem, like: Tensor) -> Tensor:
    return torch.tensor(problem.answer, dtype=like.dtype, device=like.device)
