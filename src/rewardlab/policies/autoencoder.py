"""A sparse autoencoder of activations: each is written as the sum of a few directions out of very many.

    z = top_k(relu((x - b) E^T + e));    x' = z D + b,    rows of D of length 1

Gao et al. 2024, arXiv:2406.04093. Initial weights, and the loss, the share of the activations' variance that is left unexplained,
are those of EleutherAI/sparsify; learnt by Adam. The weights are plain tensors by name, so that they can be kept with a run.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

Weights = dict[str, Tensor]


def untrained(width: int, latents: int, generator: torch.Generator, device: torch.device) -> Weights:
    """Random directions: encoder (latents, width), its bias (latents,), decoder (latents, width), its bias (width,)."""
    bound = width**-0.5
    encoder = torch.empty(latents, width).uniform_(-bound, bound, generator=generator).to(device)
    return {
        "encoder": encoder, "encoder_bias": torch.zeros(latents, device=device),
        "decoder": F.normalize(encoder, dim=1), "decoder_bias": torch.zeros(width, device=device),
    }  # fmt: skip


def reconstructed(x: Tensor, w: Weights, k: int) -> Tensor:
    """(n, width) -> (n, width): the sum of the k directions that each row excites most."""
    excited = F.relu(F.linear(x - w["decoder_bias"], w["encoder"], w["encoder_bias"]))  # (n, latents)
    strength, which = excited.topk(min(k, excited.shape[1]), sorted=False)  # (n, k)
    return torch.einsum("nk,nkd->nd", strength, w["decoder"][which]) + w["decoder_bias"]


def unexplained(x: Tensor, again: Tensor) -> Tensor:
    """The share of the variance of x (n, width) that its reconstruction lacks."""
    return (x - again).square().sum() / (x - x.mean(0)).square().sum().clamp(min=1e-12)


def learn(batches: Iterable[Tensor], latents: int, k: int, lr: float, generator: torch.Generator) -> tuple[Weights, float]:
    """Weights for `latents` directions, fitted to batches (n, width) of activations, one step each; and what
    was `unexplained` of the last one."""
    weights, optimiser, left = {}, None, 1.0
    for x in batches:
        if optimiser is None:
            weights = untrained(x.shape[1], latents, generator, x.device)
            # the mean is no direction: it would be one of every row's k
            weights["decoder_bias"].copy_(x.mean(0))
            optimiser = torch.optim.Adam([w.requires_grad_(True) for w in weights.values()], lr=lr)
        with torch.enable_grad():
            loss = unexplained(x, reconstructed(x, weights, k))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            weights["decoder"].copy_(F.normalize(weights["decoder"], dim=1))
        left = float(loss.detach())
    return {name: w.detach() for name, w in weights.items()}, left
