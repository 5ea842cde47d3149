"""The lean policy: reads, scores, learns and draws with `llama_model`, on CPU and GPU by the same code."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..core import Batch, Outputs, RewardlabError, Sampling, Trajectory
from ..kit.machine import device_of, dtype_of, keep_freed_memory
from .attention import causal_attention
from .decode import generate
from .head import per_token_losses, token_logprobs
from .llama_model import Llama, load_llama, save_llama
from .packing import scatter, unflatten
from .text import TextPolicy


class LlamaPolicy(TextPolicy):
    """A Llama-family model as a policy, a critic or a reward model (`value_head`).

    dtype: format of computation; weights, gradients and log-probs are float32.
    """

    def __init__(self, model: Llama, tokenizer: Any, device: torch.device, dtype: torch.dtype, name: str = "policy"):
        super().__init__(tokenizer)
        if device.type == "cpu":
            keep_freed_memory()
        self.model = model.to(device)
        self.device, self.dtype, self.name = device, dtype, name
        self.context = model.shape.context

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto", dtype: str = "auto", value_head: bool = False) -> LlamaPolicy:
        """Read a Hugging Face checkpoint folder with its tokenizer."""
        from transformers import AutoTokenizer

        where = device_of(device)
        tokenizer = AutoTokenizer.from_pretrained(str(folder))
        return cls(load_llama(Path(folder), value_head), tokenizer, where, dtype_of(dtype, where))

    def copy(self, name: str, value_head: bool = False) -> LlamaPolicy:
        """A model of its own with the same weights; with `value_head`, its vocabulary head gives way to a scalar one."""
        model = copy.deepcopy(self.model)
        if value_head and model.value_head is None:
            model.head = None
            model.value_head = torch.nn.Parameter(torch.zeros(1, model.shape.hidden, device=self.device))
        return LlamaPolicy(model, self.tokenizer, self.device, self.dtype, name)

    def save(self, folder: Path | str) -> None:
        """Write an ordinary Hugging Face checkpoint."""
        save_llama(self.model, Path(folder))
        self.save_tokenizer(Path(folder))

    def parameters(self) -> list[torch.nn.Parameter]:
        return list(self.model.parameters())

    def state(self) -> dict[str, Tensor]:
        return {k: v.detach() for k, v in self.model.named_parameters()}

    @torch.no_grad()
    def load_state(self, state: dict[str, Tensor]) -> None:
        for name, p in self.model.named_parameters():
            p.copy_(state[name])

    def activation_bytes(self, tokens: int) -> int:
        """About what a forward and backward pass over so many tokens keeps in memory."""
        s, size = self.model.shape, torch.empty(0, dtype=self.dtype).element_size()
        per_layer = 8 * s.hidden + 3 * (s.heads + 2 * s.kv_heads) * s.head_dim + 5 * s.mlp
        return tokens * s.layers * per_layer * size

    def weights(self) -> SimpleNamespace:
        """The weights in the format of computation, cast afresh at each call: nobody can forget to refresh them."""
        return self.model.cast(self.dtype)

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Draw one reply for each trajectory, prompts that are equal being computed once."""
        if self.model.value_head is not None:
            raise RewardlabError(f"the model {self.name!r} has a value head and cannot generate")
        return generate(self, trajectories, sampling, rng)

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs and entropies where `batch.mask`, values and hidden states everywhere; (B, T), with gradient."""
        return self._forward(batch.ids, batch.length, batch.mask, wants, per_token)

    def _forward(self, ids: Tensor, length: Tensor, mask: Tensor, wants: Sequence[str], per_token: Sequence[Any] = ()) -> Outputs:
        w = self.weights()
        rows, width = ids.shape
        real = (torch.arange(width, device=ids.device) < length[:, None]).view(-1)
        where = None if bool(real.all()) else real.nonzero().squeeze(1)
        positions = torch.arange(width, device=ids.device).repeat(rows)
        flat = ids.reshape(-1)
        if where is not None:
            flat, positions = flat[where], positions[where]
        hidden = self.model.trunk(w, flat, positions, _Causal(rows, width, where))
        out = Outputs()
        if "value" in wants:
            if self.model.value_head is None:
                raise RewardlabError(f"the model {self.name!r} has no value head")
            out.value = unflatten(F.linear(hidden, w.value_head).squeeze(-1).float(), where, rows, width)
        if "hidden" in wants:
            out.hidden = unflatten(hidden.float(), where, rows, width)
        if "logprobs" in wants or "entropy" in wants or per_token:
            self._head(out, w, hidden, flat, mask, where, per_token)
        return out

    def _head(self, out: Outputs, w, hidden: Tensor, flat: Tensor, mask: Tensor, where: Tensor | None, per_token) -> None:
        """Fill in what the vocabulary head says, at decided positions only."""
        rows, width = mask.shape
        decided = mask.clone()
        decided[:, 0] = False
        target = (decided.view(-1) if where is None else decided.view(-1)[where]).nonzero().squeeze(1)
        place = target if where is None else where[target]
        h, ids = hidden[target - 1], flat[target]
        logprobs, entropy = token_logprobs(h, w.head, ids)
        out.logprobs = scatter(logprobs, place, rows, width)
        out.entropy = scatter(entropy, place, rows, width)
        if per_token:
            extra = per_token_losses(h, w.head, ids, per_token)
            out.extra = {k: scatter(v, place, rows, width) for k, v in extra.items()}


class _Causal:
    """Attention of whole texts: flat tokens are laid out in rows for attention alone, and flattened again."""

    def __init__(self, rows: int, width: int, where: Tensor | None):
        self.rows, self.width, self.where = rows, width, where

    def __call__(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = (unflatten(x, self.where, self.rows, self.width) for x in (q, k, v))
        a = causal_attention(q, k, v)
        a = a.reshape(self.rows * self.width, *a.shape[2:])
        return a if self.where is None else a[self.where]
