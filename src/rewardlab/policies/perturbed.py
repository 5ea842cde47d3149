"""Gaussian noise on some weights of a model, within a context."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

Place = tuple[nn.Module, str]
"""A module, and the name of one of its parameters."""


@contextmanager
def perturbed(places: Sequence[Place], sigma: float, rng: torch.Generator) -> Iterator[None]:
    """A context in which each of these parameters w is w + z, z ~ N(0, sigma^2), sampled once, on the CPU."""
    kept = [(module, name, getattr(module, name)) for module, name in places]
    try:
        for module, name, weight in kept:
            # another parameter in its place: a change of the weight itself would be seen by copies that share it, and would have
            # to be undone by a subtraction that rounds
            setattr(module, name, nn.Parameter(_noisy(weight, sigma, rng), requires_grad=False))
        yield
    finally:
        for module, name, weight in kept:
            setattr(module, name, weight)


def _noisy(weight: Tensor, sigma: float, rng: torch.Generator) -> Tensor:
    return weight.detach() + sigma * torch.randn(weight.shape, generator=rng).to(weight)
