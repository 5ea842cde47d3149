"""Surprise as an input of a value head: each token's embedding includes its negative log-prob under a frozen model.

    x_t = embed(y_t) + u min(-log p(y_t | y_<t), 6) / 2,   p of the frozen model, u learnt

What a language model knows of its text shows in its vocabulary head, and hardly in the hidden states that a value head reads; a
small trunk would have to learn arithmetic before it could compare. No published reward model has this input: methods leave it off
unless asked.
"""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from rewardlab.policies.head import token_logprobs
from rewardlab.policies.llama.layout import Layout
from rewardlab.policies.llama.lora import merged

KIND = "rewardlab_surprise"
"""The model type of checkpoints that need it."""
MOST = 6.0
"""Nats beyond which a token counts as no more surprising, so that one odd token does not drown the others."""
START = 3.0
"""The size of u at the start, in sizes of an embedding: smaller ones take longer to be noticed at the end of a text."""


class Surprise(nn.Module):
    """u (hidden,), the vector to add, and the frozen `reader` (a `model.Llama` with a vocabulary head)."""

    def __init__(self, reader: Any, vector: Tensor):
        super().__init__()
        self.reader, self.vector = reader.requires_grad_(False), nn.Parameter(vector)

    @classmethod
    def by(cls, model: Any) -> Surprise:
        """Surprise of a frozen copy of a model, with a u that is random from a fixed seed, whatever the run's."""
        reader = merged(copy.deepcopy(model))
        size = START * float(reader.embed.detach().float().std())
        vector = torch.randn(reader.shape.hidden, generator=torch.Generator().manual_seed(0)) * size
        return cls(reader, vector.to(reader.embed.device))

    def added(self, tokens: Layout, ids: Tensor, dtype: torch.dtype) -> Tensor:
        """What the embeddings of the flat tokens of a table `ids` (B, T) get: (n, hidden)."""
        return self.of(tokens, ids, self.reader.cast(dtype))[:, None] * self.vector.to(dtype)

    @torch.no_grad()
    def of(self, tokens: Layout, ids: Tensor, w: SimpleNamespace) -> Tensor:
        """(n,) how surprising the flat tokens are; 0 for the first of a text, which nothing predicts."""
        hidden = self.reader.trunk(w, tokens.ids, tokens.positions, tokens.attend)
        place = torch.arange(ids.numel(), device=ids.device) if tokens.where is None else tokens.where
        place = place[place % ids.shape[1] != 0]
        before = hidden.index_select(0, tokens.flat_of(place - 1))
        logprobs, _ = token_logprobs(before, w.head, ids.reshape(-1)[place])
        # a shared prompt is written once for each of its rows, with the same numbers
        return hidden.new_zeros(len(hidden)).index_copy(0, tokens.flat_of(place), (-logprobs).clamp(max=MOST).to(hidden.dtype) / 2)
