"""LoRA for the lean decoder: frozen matrices, and a small product beside each that trains.

    W' = W + 2 B A,   A (rank, in) random, B (out, rank) zero at first

W' is made anew for each pass, which costs rank / tokens of the pass itself. So drawing and training run at the speed of the whole
model, without a product more per token; its optimiser state and its checkpoints are those of A and B alone. As peft does it, and
as `hf:FOLDER --lora-rank` does through peft: every matrix of a layer that a checkpoint holds has an adapter of its own, of scale 2
(lora_alpha = 2 rank).

Hu et al. 2021, arXiv:2106.09685
"""

from __future__ import annotations

import math
from collections.abc import Sequence

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
