"""Merging of models trained from the same start on different tasks.

Weights are tensors by name, as of `policy.state()`. A task vector is what training changed: the weights of a model minus the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from rewardlab.errors import RewardlabError

Weights = Mapping[str, Tensor]


def task_vectors(start: Weights, models: Sequence[Weights]) -> dict[str, Tensor]:
    """(models, ...) for each tensor. Raises RewardlabError for models whose weights are not those of the start, changed."""
    shape = {name: w.shape for name, w in start.items()}
    for i, model in enumerate(models, 1):
        if other := [
            name for name in {*shape, *model} if name not in shape or name not in model or model[name].shape != shape[name]
        ]:
            raise RewardlabError(
                f"model {i} of {len(models)} was not trained from the model that it is to be merged into: "
                f"{min(other)} is missing in one of them, or has another shape"
            )
    # in float32: in 16 bits small changes would vanish in the difference
    return {name: torch.stack([model[name].float() - w.float() for model in models]) for name, w in start.items()}


def _added(start: Weights, change: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: (w.float() + change[name]).to(w.dtype) for name, w in start.items()}


def average(start: Weights, models: Sequence[Weights]) -> dict[str, Tensor]:
    """The mean of the models.  Wortsman et al. 2022, arXiv:2203.05482"""
    return _added(start, {name: v.mean(0) for name, v in task_vectors(start, models).items()})


def task_arithmetic(start: Weights, models: Sequence[Weights], scale: float = 1.0) -> dict[str, Tensor]:
    """The start plus `scale` times the sum of all task vectors.  Ilharco et al. 2023, arXiv:2212.04089"""
    return _added(start, {name: scale * v.sum(0) for name, v in task_vectors(start, models).items()})


def ties(start: Weights, models: Sequence[Weights], density: float = 0.2, scale: float = 1.0) -> dict[str, Tensor]:
    """TIES: the largest changes of each task vector, a share `density`; where these disagree in sign, those of the heavier sign;
    the mean of what is left.  Yadav et al. 2023, arXiv:2306.01708
    """
    vectors = task_vectors(start, models)
    sizes = torch.cat([v.abs().flatten(1) for v in vectors.values()], 1)  # (models, weights)
    least = sizes.topk(max(1, round(density * sizes.shape[1])), 1).values[:, -1]  # (models,)
    change = {}
    for name, v in vectors.items():
        kept = torch.where(v.abs() >= _rows(least, v), v, 0.0)
        agrees = (kept * kept.sum(0).sign()) > 0
        change[name] = scale * (kept * agrees).sum(0) / agrees.sum(0).clamp(min=1)
    return _added(start, change)


def random_share(change: Weights, keep: float, rng: torch.Generator) -> dict[str, Tensor]:
    """DARE: of each change a random share `keep`, the others 0, over `keep`: the mean stays.  Yu et al. 2024, arXiv:2311.03099"""
    # sampled on the CPU, so that it is the same on every device
    return {
        name: v * torch.empty(v.shape).bernoulli_(keep, generator=rng).to(v.device) / keep for name, v in change.items()
    }  # fmt: skip


def largest_share(change: Weights, keep: float) -> dict[str, Tensor]:
    """Of each tensor's changes the share `keep` that is largest, the others 0; all, where that would be less than one."""

    def kept(v: Tensor) -> Tensor:
        count = int(keep * v.numel())
        if keep >= 1 or not count:
            return v
        chosen = v.flatten().abs().topk(count).indices
        return torch.zeros_like(v).flatten().index_copy(0, chosen, v.flatten()[chosen]).view_as(v)

    return {name: kept(v) for name, v in change.items()}


def of_one_sign(change: Weights, other: Weights, alpha: float) -> dict[str, Tensor]:
    """(1 - alpha) change + alpha other, each where its sign is that of their sum, which is + for 0."""

    def merged(v: Tensor, w: Tensor) -> Tensor:
        sign = torch.where(v + w >= 0, 1.0, -1.0)
        return (1 - alpha) * torch.where(v.sign() == sign, v, 0.0) + alpha * torch.where(w.sign() == sign, w, 0.0)

    return {name: merged(v, other[name]) for name, v in change.items()}


def overlap(vectors: Mapping[str, Tensor], eps: float) -> tuple[Tensor, Tensor]:
    """(models,) how many weights each model changed by more than `eps` together with another model, and how many alone."""
    shared, alone = [], []
    for v in vectors.values():
        changed = v.abs() > eps
        count = changed.sum(0)
        shared.append((changed & (count > 1)).flatten(1).sum(1))
        alone.append((changed & (count == 1)).flatten(1).sum(1))
    return torch.stack(shared).sum(0), torch.stack(alone).sum(0)


def reinforced_agents(start: Weights, models: Sequence[Weights], eps: float = 1e-5, gain: float = 0.2) -> dict[str, Tensor]:
    """RAM: a change that several models made is averaged over those; one that a single model made is kept, and a little enlarged.

    The factor is 1 + gain min(1, rho), rho: the model's shared changes per change of its own. Changes of at most `eps` are none.
    Yuan et al. 2026, arXiv:2601.13572
    """
    vectors = task_vectors(start, models)
    shared, alone = overlap(vectors, eps)
    factor = 1 + gain * (shared / alone.clamp(min=1)).clamp(max=1.0)  # (models,)
    change = {}
    for name, v in vectors.items():
        v = torch.where(v.abs() > eps, v, 0.0)
        count = (v != 0).sum(0)
        change[name] = torch.where(count == 1, (v * _rows(factor, v)).sum(0), v.sum(0) / count.clamp(min=1))
    return _added(start, change)


def _rows(per_model: Tensor, v: Tensor) -> Tensor:
    """(models,) as (models, 1, ...), to go with a tensor's task vectors."""
    return per_model.view(-1, *[1] * (v.dim() - 1))
