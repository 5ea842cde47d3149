"""What the lean policy takes in memory, by its configuration: sums that passes and plans are made by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from rewardlab.policies.llama.decode import MAX_ROWS
from rewardlab.policies.llama.decoder import PREFILL_TOKENS
from rewardlab.policies.llama.steps import SPAN_MULTIPLE
from rewardlab.policies.room import LOGIT_BYTES, fitting_rows, sampling_cost


class Sizes:
    """Bytes of activations, copies, keys and values."""

    model: Any
    device: torch.device
    dtype: torch.dtype
    recomputes: bool
    int8: SimpleNamespace | None

    def activation_bytes(self, tokens: int) -> int:
        """Roughly the bytes that a forward and backward pass over so many tokens keeps in memory."""
        s, size = self.model.shape, torch.empty(0, dtype=self.dtype).element_size()
        per_layer = 8 * s.hidden + 3 * (s.heads + 2 * s.kv_heads) * s.head_dim + 5 * s.mlp
        # of other layers than the one that is computed again, what they read
        return tokens * (s.layers * s.hidden + per_layer if self.recomputes else s.layers * per_layer) * size

    def copy_bytes(self, sampling: bool) -> int:
        """The bytes of the copies of weights, in the format of computation, that a pass keeps until it ends."""
        model, s, size = self.model, self.model.shape, torch.empty(0, dtype=self.dtype).element_size()
        adapted = {name for layer in model.layers for name in layer.adapters}
        if self.dtype != torch.float32:
            # what is in the format already is read as it is, unless adapters are added to it, or the last norm to the head
            changed = adapted | ({"head"} if sampling else set())
            own = [(name.rpartition(".")[2], p) for name, p in model.named_parameters() if ".adapters." not in name]
            copied = sum(p.numel() for name, p in own if p.dtype != self.dtype or name in changed)
            return size * (copied + (s.vocab * s.hidden if sampling and s.tied else 0))
        changed = adapted | ({"qkv", "gate_up"} if sampling else set())
        folded = sum(getattr(layer, name).numel() for layer in model.layers for name in changed)
        return size * (folded + (s.vocab * s.hidden if sampling else 0))

    def rows_at_once(self, rows: int, prompt: int, reply: int, free: int) -> int:
        """How many of so many rows are sampled together, at most, where so many bytes are free."""
        # a planned model is on no device yet
        most = max(MAX_ROWS.values()) if self.device.type == "meta" else MAX_ROWS.get(self.device.type, MAX_ROWS["cpu"])
        return len(fitting_rows([prompt] * rows, most, sampling_cost(self, reply), free)[0])

    def reading_bytes(self, tokens: int) -> int:
        s = self.model.shape
        return tokens * (8 * s.hidden + 3 * s.mlp) * torch.empty(0, dtype=self.dtype).element_size()

    def sampling_bytes(self, rows: int, prompt: int, reply: int) -> dict[str, int]:
        read = self.reading_bytes(min(rows * prompt, PREFILL_TOKENS + prompt))
        together = max(read, LOGIT_BYTES * rows * self.model.shape.vocab)
        return {"keys and values": self.cache_bytes(rows, prompt + reply), "prompts or logits": together}

    def cache_bytes(self, rows: int, tokens: int) -> int:
        """The bytes of keys and values of rows of so many tokens that are sampled together."""
        s, span = self.model.shape, -(-tokens // SPAN_MULTIPLE) * SPAN_MULTIPLE
        numbers = 2 * s.layers * s.kv_heads * s.head_dim
        size = 4 if self.int8 is not None else torch.empty(0, dtype=self.dtype).element_size()
        return rows * span * numbers * size
