"""Weights of policies: those that wrap a single module, and how all are shown."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class HasWeights:
    """Base of policies whose weights are all in `model`."""

    model: Any

    def __repr__(self) -> str:
        return shown(self)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.model.parameters())

    def state(self) -> dict[str, Tensor]:
        """The weights that train, by name."""
        return {k: v.detach() for k, v in self.model.named_parameters() if v.requires_grad}

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, p in self.model.named_parameters():
            if p.requires_grad:
                # in place: the optimiser and tied modules hold references to these very parameters
                p.copy_(state[name])


def shown(policy: Any) -> str:
    """A policy in one line: its class, name and size."""
    sizes = [(p.numel(), p.requires_grad) for p in policy.parameters()]
    total, trained = sum(n for n, _ in sizes), sum(n for n, trains in sizes if trains)
    part = "" if trained == total else f", of which {trained:,} train"
    return f"{type(policy).__name__}({policy.name!r}, {total:,} parameters{part}, on {policy.device})"
