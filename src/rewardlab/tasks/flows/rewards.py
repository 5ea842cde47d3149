"""Rewards for points: closeness to the requested mode, and imperfect proxies of it. All are differentiable.

A problem's `answer` is the centre of the requested mode; `meta["modes"]` has the centres of all modes, the requested one first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Problem, Score, Trajectory
from rewardlab.core.domain import PositiveFloat
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward

Gradient = Callable[..., Tensor]


def _near(x: Tensor, problem: Problem, *, width: float) -> Tensor:
    return (-(x - _target(problem, x)).square().sum(-1) / (2 * width**2)).exp()


@reward(differentiable=_near)
def closeness(trajectory: Trajectory, *, width: PositiveFloat = 0.5) -> Score:
    """exp(-d^2 / (2 width^2)), d the distance to the centre of the requested mode."""
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
