"""LoRA for the lean decoder: frozen matrices, and a small product beside each that trains.

    W' = W + 2 B A,   A (rank, in) random, B (out, rank) zero at first

W' is computed once per forward pass, which costs rank / tokens of the pass itself. So sampling and training run at the speed of the
full model, without extra products per token; optimiser state and checkpoints hold A and B alone. As in peft, which `hf:FOLDER
--lora-rank` uses: every matrix of a layer in the checkpoint has its own adapter, of scale 2 (lora_alpha = 2 rank).

Hu et al. 2021, arXiv:2106.09685
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

SCALE = 2.0
"""lora_alpha / rank."""


class Adapter(nn.Module):
    """The adapter of a matrix (out, in) in which several matrices of the checkpoint, of `heights` rows each, are stacked."""

    def __init__(self, heights: Sequence[int], width: int, rank: int, generator: torch.Generator):
        super().__init__()
        self.heights, self.rank = tuple(heights), rank
        bound = 1 / math.sqrt(width)  # Kaiming's with a = sqrt(5), as peft has it
        self.A = nn.Parameter(torch.empty(len(self.heights) * rank, width).uniform_(-bound, bound, generator=generator))
        # B = 0: the adapted model starts equal to the original one
        self.B = nn.Parameter(torch.zeros(sum(self.heights), rank))

    def forward(self, weight: Tensor) -> Tensor:
        """W + 2 B A."""
        pairs = zip(self.B.split(self.heights), self.A.split(self.rank), strict=True)
        return weight + SCALE * torch.cat([b @ a for b, a in pairs])


def adapt(model: Any, rank: int, generator: torch.Generator) -> None:
    """Freeze all weights of a `model.Llama` and put adapters on the matrices of all layers."""
    s = model.shape
    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    heights = {"qkv": (q, kv, kv), "out": (s.hidden,), "gate_up": (s.mlp, s.mlp), "down": (s.hidden,)}
    # before adapters are added: they must stay trainable
    model.requires_grad_(False)
    for layer in model.layers:
        for name, rows in heights.items():
            weight = getattr(layer, name)
            layer.adapters[name] = Adapter(rows, weight.shape[1], rank, generator).to(weight.device)


@torch.no_grad()
def merged(model: Any) -> Any:
    """The same model without adapters: a copy that has added them to its weights, or itself where there are none."""
    if not any(layer.adapters for layer in model.layers):
        return model
    copied = copy.deepcopy(model)
    for layer in copied.layers:
        for name, adapter in layer.adapters.items():
            weight = getattr(layer, name)
            weight.copy_(adapter(weight))
        layer.adapters.clear()
    return copied
