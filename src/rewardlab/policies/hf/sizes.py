"""What a policy of transformers takes in memory, by its configuration: sums that passes and plans are made by."""

from __future__ import annotations

from typing import Any

import torch

from rewardlab.policies.hf.adapters import adapted, tables
from rewardlab.policies.hf.model import cached_numbers, layer_matrices, reading_bytes, vocabulary
from rewardlab.policies.room import LOGIT_BYTES, fitting_rows, sampling_cost

ROWS = 256
"""Prompts in one call of `generate` at most."""


class Sizes:
    """Bytes of activations, copies, keys and values."""

    model: Any
    whole: Any
    dtype: torch.dtype
    depth: int
    packed: bool
    recomputes: bool

    def activation_bytes(self, tokens: int) -> int:
        """Roughly the bytes that a forward and backward pass over so many tokens keeps in memory."""
        c, size = self.model.config.get_text_config(), torch.empty(0, dtype=self.dtype).element_size()
        mlp = getattr(c, "intermediate_size", None) or 4 * c.hidden_size
        # the residual stream and what norms read and write, which autocast leaves in float32
        exact = 5 * c.hidden_size * 4
        layer = (12 * c.hidden_size + 5 * mlp) * size + exact
        # of other layers than the one that is computed again, what they read, which autocast leaves in float32
        return tokens * (c.num_hidden_layers * 4 * c.hidden_size + layer if self.recomputes else c.num_hidden_layers * layer)

    def copy_bytes(self, sampling: bool) -> int:
        """The bytes of the copies of weights, in the format of computation, that a pass keeps until it ends."""
        head, size = vocabulary(self.model)[0], torch.empty(0, dtype=self.dtype).element_size()
        # what is packed into 4 bits is unpacked matrix by matrix
        matrices = [] if self.packed else layer_matrices(self.model)
        # sampling has adapters added to all; what is in the format already is read as it is
        merged = sampling and adapted(self.whole)
        copied = sum(w.numel() for w in matrices if merged or w.dtype != self.dtype)
        # a layer that is computed again is cast again
        parts = self.depth if self.recomputes and not sampling else 1
        # tables of experts have adapters added to them in the format that they are kept in, in every pass
        added = sum(w.numel() * w.element_size() for w in tables(self.whole)) if adapted(self.whole) else 0
        return size * (copied // parts + (head.numel() if head.dtype != self.dtype else 0)) + added // parts

    def rows_at_once(self, rows: int, prompt: int, reply: int, free: int) -> int:
        """How many of so many rows are sampled together, at most, where so many bytes are free."""
        return len(fitting_rows([prompt] * rows, ROWS, sampling_cost(self, reply), free)[0])

    def reading_bytes(self, tokens: int) -> int:
        return reading_bytes(self.model.config, self.dtype, tokens)

    def sampling_bytes(self, rows: int, prompt: int, reply: int) -> dict[str, int]:
        # of the prompts, the last token's logits alone are computed
        logits = LOGIT_BYTES * rows * len(vocabulary(self.model)[0])
        together = max(self.reading_bytes(rows * prompt), logits)
        return {"keys and values": self.cache_bytes(rows, prompt + reply), "prompts or logits": together}

    def cache_bytes(self, rows: int, tokens: int) -> int:
        """The bytes of keys and values of rows of so many tokens that are sampled together."""
        keys, values = cached_numbers(self.model.config.get_text_config())
        # autocast rotates keys in float32, and they stay so
        return rows * tokens * (4 * keys + torch.empty(0, dtype=self.dtype).element_size() * values)
