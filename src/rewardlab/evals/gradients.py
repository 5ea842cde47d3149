"""Variance of policy-gradient estimates between groups of samples, under several credits; nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Problem, Rollout, Run, Score, Trajectory, measure
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.util.outputs import forward_batch


@measure
def gradient_variance(
    problems: Sequence[Problem], run: Run, *, reward: Reward, credits: dict[str, Credit], rollout: Rollout, size: PositiveInt = 8
) -> dict[str, float]:
    """The replies that `rollout` samples to a problem, in groups of `size`: each gives an estimate sum_i A_i g_i / size, g_i the
    gradient of log pi of a whole reply. A credit gives all tokens of a reply one A_i.

    variance.X: variance of the estimate between the groups of a problem, under the credit X, summed over problems and weights of
    the policy, over that of A_i = r_i.  variance.norm: the same under r_i - sum_j |g_j|^2 r_j / sum_j |g_j|^2, the constant
    baseline of least variance but for its being estimated.  norm_to_length: mean over problems of the correlation of |g|^2 with
    the length.  n: problems with two groups or more.  Replies without a reward are left out.

    Holds the gradients of all replies to a problem at once.  Raises RewardlabError if no problem varies.
    """
    variances: dict[str, float] = dict.fromkeys(("none", *credits, "norm"), 0.0)
    relations, counted = [], 0
    groups = rollout(list(problems), run)
    for group, scores in zip(groups, reward(groups, run), strict=True):
        judged = [(t, float(s.total)) for t, s in zip(group, scores, strict=True) if s.total is not None and t.mask.any()]
        rows, rewards = [t for t, _ in judged], torch.tensor([r for _, r in judged])
        whole = len(rows) // size * size
        if whole < 2 * size:
            continue
        rows, rewards, counted = rows[:whole], rewards[:whole].double(), counted + 1
        products = logprob_gradient_products(run, rows)  # (m, m)
        squared, lengths = products.diagonal(), np.array([t.mask.sum() for t in rows], float)
        if np.ptp(lengths) and float(squared.std()):
            relations.append(float(np.corrcoef(squared.numpy(), lengths)[0, 1]))
        batch = paid_at_the_end(rows, rewards.tolist(), size, torch.device("cpu"))
        found = {"none": rewards, "norm": _less_weighted_mean(rewards, squared, size)}
        found |= {name: mean_credit(chain(batch.reward, batch, run), batch) for name, chain in credits.items()}
        for name, credit in found.items():
            variances[name] += _variance(credit, products, size)
    if not variances["none"]:
        raise RewardlabError(f"gradient_variance: no estimate varies on any of {len(problems)} problems; {rollout} gives it groups")
    numbers = {f"variance.{name}": v / variances["none"] for name, v in variances.items()}
    relation = float(np.mean(relations)) if relations else float("nan")
    return {**numbers, "norm_to_length": relation, "n": float(counted)}


@torch.enable_grad()
def logprob_gradient_products(run: Run, rows: Sequence[Trajectory]) -> Tensor:
    """(m, m) the inner products of the gradients of the rows' log-probabilities."""
    weights = [p for p in run.policy.parameters() if p.requires_grad]
    gradients = []
    for row in rows:
        batch = forward_batch([row], run.policy.device)
        total = torch.where(batch.mask, run.policy.evaluate(batch).logprobs, 0.0).sum()
        parts = torch.autograd.grad(total, weights, allow_unused=True)
        # a weight without part in the row, such as an unused head, has no gradient
        filled = [torch.zeros_like(p) if g is None else g for g, p in zip(parts, weights, strict=True)]
        gradients.append(torch.cat([g.flatten() for g in filled]))
    table = torch.stack(gradients).float()
    return (table @ table.T).double().cpu()


def paid_at_the_end(rows: Sequence[Trajectory], rewards: Sequence[float], size: int, device: torch.device) -> Batch:
    """A batch for a forward pass of the rows, with their rewards on their last decisions, in groups of `size`."""
    batch = forward_batch(rows, device)
    last = torch.tensor([int(np.flatnonzero(t.mask)[-1]) for t in rows], device=device)
    where = torch.zeros_like(batch.mask).scatter(1, last[:, None], True)
    reward = torch.where(where, torch.tensor(rewards, dtype=torch.float32, device=device)[:, None], 0.0)
    return replace(batch, reward=reward, rewarded=where, group=torch.arange(len(rows), device=device) // size)


@contextmanager
def after_step(policy: Any, loss: Tensor, length: float) -> Iterator[bool]:
    """A context in which the policy has made a step of this length, the norm of the change of all weights, down the gradient of a
    loss; then it is as before. It is told whether there was a gradient at all.
    """
    weights = [p for p in policy.parameters() if p.requires_grad]
    gradients = torch.autograd.grad(loss, weights, allow_unused=True)
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradients if g is not None))
    before = {name: value.clone() for name, value in policy.state().items()}
    try:
        with torch.no_grad():
            for weight, gradient in zip(weights, gradients, strict=True):
                if gradient is not None and norm > 0:
                    weight -= length / norm * gradient
        yield norm > 0
    finally:
        policy.load_state(before)


def judged_batch(
    group: Sequence[Trajectory], scores: Sequence[Score], run: Run, credit: Credit, wants: Sequence[str]
) -> Batch | None:
    """A group's rows that have a reward, with "old", the outputs "policy.X" of `wants` and their credit; None of fewer than two."""
    rows = [(t, float(s.total)) for t, s in zip(group, scores, strict=True) if s.total is not None and t.mask.any()]
    if len(rows) < 2:
        return None
    batch = paid_at_the_end([t for t, _ in rows], [r for _, r in rows], len(rows), run.policy.device)
    with torch.no_grad():
        out = run.policy.evaluate(batch, ("logprobs", *wants))
    batch = replace(batch, old=out.logprobs, columns={f"policy.{name}": getattr(out, name) for name in wants})
    batch.credit = credit(batch.reward, batch, run)
    return batch


def mean_credit(credit: Tensor, batch: Batch) -> Tensor:
    """(B,) the mean credit of each row's decisions."""
    return (torch.where(batch.mask, credit, 0.0).sum(1) / batch.mask.sum(1)).double()


def _less_weighted_mean(rewards: Tensor, weight: Tensor, size: int) -> Tensor:
    r, w = rewards.view(-1, size), weight.view(-1, size)
    return (r - (w * r).sum(1, keepdim=True) / w.sum(1, keepdim=True).clamp(min=1e-12)).flatten()


def _variance(credit: Tensor, products: Tensor, size: int) -> float:
    """Of the groups' estimates, by the inner products alone: mean |e - mean e|^2, unbiased."""
    groups = len(credit) // size
    # (groups, m): the coefficients of each estimate
    coefficients = torch.block_diag(*(credit.view(groups, size) / size))
    inner = coefficients @ products @ coefficients.T
    return float((inner.trace() - inner.sum() / groups) / (groups - 1))
