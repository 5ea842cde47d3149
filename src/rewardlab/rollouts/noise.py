"""The noise that a frozen generator starts from, as what is searched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Group, Problem, Run, Trajectory, Turn, rollout
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward


def log_chi(noise: Tensor) -> Tensor:
    """(n,) the log-density of the norm of noise (n, size), up to a constant: that of a chi distribution of `size` degrees.

    (size - 1) log |x| - |x|^2 / 2, at its highest where |x|^2 = size - 1: about as long as Gaussian noise is.
    """
    squared = noise.square().sum(1)
    return 0.5 * (noise.shape[1] - 1) * squared.log() - 0.5 * squared


@rollout
def noise_ascent(
    problems: list[Problem], run: Run, *, reward: Reward, n: int = 50, lr: float = 0.3, momentum: float = 0.9, clip: float = 0.1,
    regular: float = 0.3,
) -> list[Group]:  # fmt: skip
    """n iterates of gradient ascent on reward(G(noise)) + regular * log_chi(noise), G the policy's deterministic flow.

    Nesterov momentum; the gradient of each problem's noise is cut to the norm `clip`. The policy stays as it is. With lr=0 each
    iterate is fresh noise instead: n independent draws at the same number of evaluations of generator and reward.
    """
    if not hasattr(run.policy, "flow"):
        raise RewardlabError("noise_ascent climbs through a policy that makes data of noise, and this one does not; play flows")
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    draws = _climb(asked, run, reward, n, lr, momentum, clip, regular) if lr else _fresh(asked, run, n)
    rows = [[_row(t, i, *(x[j] for x in pair)) for j, t in enumerate(asked)] for i, pair in enumerate(draws)]
    return [list(group) for group in zip(*rows, strict=True)]


def _fresh(asked: list[Trajectory], run: Run, n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    condition = _conditions(asked, run)
    for _ in range(n):
        noise = torch.randn(condition.shape, generator=run.rng("rollout")).to(condition)
        with torch.no_grad():
            path = run.policy.flow(noise, condition)
        yield noise.cpu().numpy(), path.cpu().numpy()


def _climb(
    asked: list[Trajectory], run: Run, reward: Reward, n: int, lr: float, momentum: float, clip: float, regular: float
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Noise and latents (problems, ...) of each iterate."""
    condition = _conditions(asked, run)
    noise = torch.randn(condition.shape, generator=run.rng("rollout")).to(condition).requires_grad_()
    optimiser = torch.optim.SGD([noise], lr=lr, momentum=momentum, nesterov=momentum > 0)
    for i in range(n):
        with torch.set_grad_enabled(i < n - 1):
            path = run.policy.flow(noise, condition)
        yield noise.detach().cpu().numpy().copy(), path.detach().cpu().numpy()
        if i < n - 1:
            earned = torch.cat([reward.differentiable(path[j, -1:], t.problem) for j, t in enumerate(asked)])
            (noise.grad,) = torch.autograd.grad(-(earned + regular * log_chi(noise)).sum(), noise)
            noise.grad *= (clip / noise.grad.norm(dim=1, keepdim=True)).clamp(max=1.0)
            optimiser.step()


def _conditions(asked: list[Trajectory], run: Run) -> Tensor:
    return torch.from_numpy(np.stack([t.ids[0] for t in asked])).to(run.policy.device)


def _row(asked: Trajectory, i: int, noise: np.ndarray, path: np.ndarray) -> Trajectory:
    return replace(asked.plus(Turn(None, noise[None])).plus(Turn(None, path), "end"), path=(i,))
