"""The last layer, in chunks: the (tokens x vocabulary) matrix is never held whole, forward or backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK_ELEMENTS = 1 << 23
ADDED_ELEMENTS = 1 << 21


def chunks_of(n: int, vocab: int) -> list[slice]:
    """Slices of n tokens whose logits fit in CHUNK_ELEMENTS numbers each."""
    size = max(16, CHUNK_ELEMENTS // vocab)
    return [slice(i, min(i + size, n)) for i in range(0, max(n, 1), size)]


class _LogProbs(torch.autograd.Function):
    """log p(id) and entropy of each row. The backward pass recomputes a chunk's logits and differentiates by hand:

    d logp / d logits = onehot - p;     d H / d logits = -p (log p + H)
    """

    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        n = hidden.shape[0]
        logprobs = torch.empty(n, dtype=torch.float32, device=hidden.device)
        entropy, normaliser = torch.empty_like(logprobs), torch.empty_like(logprobs)
        for part in chunks_of(n, weight.shape[0]):
            logits = (hidden[part] @ weight.T).float()
            chosen = logits.gather(1, ids[part, None]).squeeze(1)
            top = logits.amax(1, keepdim=True)
            p = (logits - top).exp_()
            total = p.sum(1)
            lse = total.log() + top.squeeze(1)
            logprobs[part] = chosen - lse
            entropy[part] = lse - torch.linalg.vecdot(p, logits) / total
            normaliser[part] = lse
        ctx.save_for_backward(hidden, weight, ids, entropy, normaliser)
        return logprobs, entropy

    @staticmethod
    def backward(ctx, g_logp: Tensor | None, g_entropy: Tensor | None):  # type: ignore[override]
        hidden, weight, ids, entropy, normaliser = ctx.saved_tensors
        g_hidden = torch.empty_like(hidden)
        # a frozen head (LoRA) asks for no gradient, which would cost as much as the other one
        g_weight = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        uses_entropy = g_entropy is not None and bool((g_entropy != 0).any())
        for part in chunks_of(hidden.shape[0], weight.shape[0]):
            logp = (hidden[part] @ weight.T).float() - normaliser[part, None]
            p = logp.exp()
            g = torch.zeros_like(p) if g_logp is None else p * -g_logp[part, None]
            if g_logp is not None:
                g.scatter_add_(1, ids[part, None], g_logp[part, None].float())
            if uses_entropy and g_entropy is not None:
                g -= g_entropy[part, None] * p * (logp + entropy[part, None])
            g = g.to(hidden.dtype)
            g_hidden[part] = g @ weight
            if g_weight is not None:
                add_product(g_weight, g, hidden[part])
        return g_hidden, None if g_weight is None else g_weight.to(weight.dtype), None


def add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """total (m, k) += a (n, m)^T b (n, k). In parts on CPUs: each is added while it lies in the cache."""
    rows = max(1, ADDED_ELEMENTS // b.shape[1]) if total.device.type == "cpu" else len(total)
    for part, some in zip(total.split(rows), a.split(rows, 1), strict=True):
        part += some.T @ b


def token_logprobs(hidden: Tensor, weight: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """(log-probs, entropies), each (n,) float32, of `ids` (n,) under softmax(hidden (n, d) @ weight (V, d)^T)."""
    return _LogProbs.apply(hidden, weight, ids)


def per_token_losses(
    hidden: Tensor, weight: Tensor, ids: Tensor, functions: Sequence[Callable[[Tensor, Tensor], dict[str, Tensor]]]
) -> dict[str, Tensor]:
    """Run f(logits (m, V), ids (m,)) -> {name: (m,)} over chunks with gradient; a chunk's logits are recomputed going back."""

    def on_chunk(h: Tensor, w: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        logits = (h @ w.T).float()
        columns: dict[str, Tensor] = {}
        for f in functions:
            columns |= f(logits, i)
        names[:] = list(columns)
        return tuple(columns.values())

    names: list[str] = []
    pieces = [
        checkpoint(on_chunk, hidden[part], weight, ids[part], use_reentrant=False)
        for part in chunks_of(hidden.shape[0], weight.shape[0])
    ]
    return {name: torch.cat(columns) for name, columns in zip(names, zip(*pieces, strict=True), strict=True)}
