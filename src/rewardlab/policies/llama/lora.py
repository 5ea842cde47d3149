"""LoRA for the lean decoder: frozen matrices, and a small product beside each that trains.

    W' = W + 2 B A,   A (rank, in) random, B (out, rank) zero at first

W' is made anew for each pass, which costs rank / tokens of the pass itself. So sampling and training run at the speed of the whole
model, without a product more per token; its optimiser state and its checkpoints are those of A and B alone. As peft does it, and
as `hf:FOLDER --lora-rank` does through peft: every matrix of a layer that a checkpoint holds has an adapter of its own, of scale 2
(lora_alpha = 2 rank).

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


class Adapter(nn.Module):
    """Beside a matrix (out, in) that holds several of the checkpoint's, one above the other, of `heights` rows each."""

    def __init__(self, heights: Sequence[int], width: int, rank: int, generator: torch.Generator):
        super().__init__()
        self.heights, self.rank = tuple(heights), rank
        bound = 1 / math.sqrt(width)  # Kaiming's with a = sqrt(5), as peft has it
        self.A = nn.Parameter(torch.empty(len(self.heights) * rank, width).uniform_(-bound, bound, generator=generator))
        self.B = nn.Parameter(torch.zeros(sum(self.heights), rank))

    def forward(self, weight: Tensor) -> Tensor:
        """W + 2 B A."""
        parts = zip(self.B.split(self.heights), self.A.split(self.rank), strict=True)
        return weight + SCALE * torch.cat([b @ a for b, a in parts])


def adapt(model: Any, rank: int, generator: torch.Generator) -> None:
    """Freeze all weights of a `model.Llama` and put adapters on the matrices of all layers."""
    s = model.shape
    q, kv = s.heads * s.head_dim, s.kv_heads * s.head_dim
    heights = {"qkv": (q, kv, kv), "out": (s.hidden,), "gate_up": (s.mlp, s.mlp), "down": (s.hidden,)}
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
