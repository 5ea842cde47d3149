"""The vocabulary head, in chunks of tokens: the (tokens, vocabulary) logits are never in memory at once, forward or backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from rewardlab.policies.room import LOGIT_BYTES
from rewardlab.policies.sampler import nucleus
from rewardlab.util.device import free_memory

CHUNK_ELEMENTS = 1 << 23
"""Logits in a chunk: 32 MB in float32."""
GPU_ELEMENTS = 1 << 27
"""On a GPU with enough free memory. For each chunk it reads the head's whole matrix: with CHUNK_ELEMENTS, for 55 tokens of a
vocabulary of 152,000, it would do little else."""
GPU_SHARE = 0.25
"""Of its free memory, what a chunk's tables may take: the backward pass of the layers comes after it."""
ADDED_ELEMENTS = 1 << 21
"""Elements of a gradient that a CPU adds to at a time: 8 MB in float32, so that they stay in its cache."""


def chunks_of(n: int, weight: Tensor) -> list[slice]:
    """Slices of n tokens, of whose logits by a head (V, d) there is room for one slice at a time."""
    vocab, elements = len(weight), CHUNK_ELEMENTS
    if weight.device.type == "cuda":
        # powers of two, so that a little more or less free memory changes nothing
        elements, free = GPU_ELEMENTS, free_memory(weight.device)
        while elements > CHUNK_ELEMENTS and LOGIT_BYTES * elements > GPU_SHARE * free:
            elements //= 2
    # at least 16 tokens: with a huge vocabulary, products of fewer rows would waste the hardware
    size = max(16, elements // vocab)
    return [slice(i, min(i + size, n)) for i in range(0, max(n, 1), size)]


def at_temperature(hidden: Tensor, temperature: float) -> Tensor:
    """Hidden states (n, d) whose logits are the head's, divided by a temperature: the head is linear."""
    return hidden if temperature == 1.0 else hidden / temperature


class _LogProbs(torch.autograd.Function):
    """log p(id) and entropy of each row. The backward pass recomputes a chunk's logits and differentiates by hand:

    d logp / d logits = onehot - p;     d H / d logits = -p (log p + H)
    """

    @staticmethod
    def forward(ctx, hidden: Tensor, weight: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        n = hidden.shape[0]
        logprobs = torch.empty(n, dtype=torch.float32, device=hidden.device)
        entropy, normaliser = torch.empty_like(logprobs), torch.empty_like(logprobs)
        for part in chunks_of(n, weight):
            logits = (hidden[part] @ weight.T).float()
            chosen = logits.gather(1, ids[part, None]).squeeze(1)
            # subtract the maximum before exp, so that no logit overflows
            top = logits.amax(1, keepdim=True)
            p = (logits - top).exp_()
            total = p.sum(1)
            lse = total.log() + top.squeeze(1)
            logprobs[part] = chosen - lse
            # H = lse - sum p logit, with the p of this line not yet divided by its sum
            entropy[part] = lse - torch.linalg.vecdot(p, logits) / total
            normaliser[part] = lse
        # (n,) per token instead of (n, V): backward recomputes the logits of one chunk at a time
        ctx.save_for_backward(hidden, weight, ids, entropy, normaliser)
        # None, not zeros, for an output that no loss uses: then backward skips a second (m, V) product, without looking at values
        ctx.set_materialize_grads(False)
        return logprobs, entropy

    @staticmethod
    def backward(ctx, g_logp: Tensor | None, g_entropy: Tensor | None):  # type: ignore[override]
        hidden, weight, ids, entropy, normaliser = ctx.saved_tensors
        g_hidden = torch.empty_like(hidden)
        # a frozen head (LoRA) needs no gradient, which would double the cost; float32, since many chunks are summed in it
        g_weight = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        for part in chunks_of(hidden.shape[0], weight):
            # in place wherever it can be: each of these (m, V) tables is as large as a chunk may be
            logp = (hidden[part] @ weight.T).float().sub_(normaliser[part, None])
            if g_entropy is None:
                p = logp.exp_()
            else:
                p = logp.exp()
                of_entropy = logp.add_(entropy[part, None]).mul_(g_entropy[part, None] * p)
            g = p.zero_() if g_logp is None else p.mul_(-g_logp[part, None])
            if g_logp is not None:
                g.scatter_add_(1, ids[part, None], g_logp[part, None].float())
            if g_entropy is not None:
                g -= of_entropy
            # the matrix products below run in the format of the forward pass
            g = g.to(hidden.dtype)
            g_hidden[part] = g @ weight
            if g_weight is not None:
                add_product(g_weight, g, hidden[part])
        return g_hidden, None if g_weight is None else g_weight.to(weight.dtype), None


def add_product(total: Tensor, a: Tensor, b: Tensor) -> None:
    """total (m, k) += a (n, m)^T b (n, k). On CPUs in blocks of rows, each of which is added while it is in the cache."""
    rows = max(1, ADDED_ELEMENTS // b.shape[1]) if total.device.type == "cpu" else len(total)
    for block, columns in zip(total.split(rows), a.split(rows, 1), strict=True):
        block += columns.T @ b


def token_logprobs(hidden: Tensor, weight: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """(log-probs, entropies), each (n,) float32, of `ids` (n,) under softmax(hidden (n, d) @ weight (V, d)^T)."""
    return _LogProbs.apply(hidden, weight, ids)


@torch.no_grad()
def likeliest(hidden: Tensor, weight: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """(ids, log-probs), each (n, k), of the k likeliest next tokens under softmax(hidden (n, d) @ weight (V, d)^T)."""
    parts = chunks_of(hidden.shape[0], weight)
    found = [(hidden[part] @ weight.T).float().log_softmax(1).topk(k, dim=1) for part in parts]
    return torch.cat([top.indices for top in found]), torch.cat([top.values for top in found])


def per_token_losses(
    hidden: Tensor, weight: Tensor, ids: Tensor, functions: Sequence[Callable[[Tensor, Tensor], dict[str, Tensor]]]
) -> dict[str, Tensor]:
    """Run f(logits (m, V), ids (m,)) -> {name: (m,)} over chunks, with gradient; backward recomputes a chunk's logits."""

    def on_chunk(h: Tensor, w: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        logits = (h @ w.T).float()
        columns: dict[str, Tensor] = {}
        for f in functions:
            columns |= f(logits, i)
        # `checkpoint` passes tensors only, so the names leave the function by this list
        names[:] = list(columns)
        return tuple(columns.values())

    names: list[str] = []
    pieces = [
        checkpoint(on_chunk, hidden[part], weight, ids[part], use_reentrant=False) for part in chunks_of(hidden.shape[0], weight)
    ]
    return {name: torch.cat(columns) for name, columns in zip(names, zip(*pieces, strict=True), strict=True)}


def divergences(teacher: Tensor, teacher_weight: Tensor, hidden: Tensor, weight: Tensor) -> Tensor:
    """(n,) KL(p || q), with gradient, of p = softmax(teacher (n, d') @ teacher_weight^T), q = softmax(hidden (n, d) @ weight^T)."""

    def on_chunk(t: Tensor, h: Tensor, w: Tensor) -> Tensor:
        p, q = F.log_softmax((t @ teacher_weight.T).float(), 1), F.log_softmax((h @ w.T).float(), 1)
        return (p.exp() * (p - q)).sum(1)

    parts = chunks_of(hidden.shape[0], weight)
    return torch.cat([checkpoint(on_chunk, teacher[part], hidden[part], weight, use_reentrant=False) for part in parts])


def nucleus_logprobs(
    hidden: Tensor, weight: Tensor, other: Tensor, other_weight: Tensor, ids: Tensor, top_p: float, always: Sequence[int] = ()
) -> tuple[Tensor, Tensor]:
    """log q(id), with gradient, and whether id is in N, each (n,): q is softmax(hidden (n, d) @ weight^T) on N alone, renormalised.

    N: the fewest tokens that have top_p of softmax(other (n, d') @ other_weight^T) between them, and `always`. For an id outside of
    N the first number is log p(id) - log p(N), p being the unrestricted softmax.
    """

    def on_chunk(h: Tensor, w: Tensor, o: Tensor, i: Tensor) -> tuple[Tensor, Tensor]:
        logits = (h @ w.T).float()
        allowed = nucleus((o @ other_weight.T).float(), top_p, always)
        inside = logits.masked_fill(~allowed, -torch.inf).logsumexp(1)
        chosen = i[:, None]
        return logits.gather(1, chosen).squeeze(1) - inside, allowed.gather(1, chosen).squeeze(1)

    parts = chunks_of(hidden.shape[0], weight)
    pieces = [checkpoint(on_chunk, hidden[part], weight, other[part], ids[part], use_reentrant=False) for part in parts]
    logprobs, allowed = zip(*pieces, strict=True)
    return torch.cat(logprobs), torch.cat(allowed)


def joint_head(members: Sequence[tuple[float, Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Hidden states (n, sum of d) and a head (V, sum of d) whose logits are the sum of weight * hidden (n, d) @ head (V, d)^T.

    V is that of the narrowest head: what others have beyond it is padding.
    """
    width = min(len(head) for _, _, head in members)
    return torch.cat([h for _, h, _ in members], 1), torch.cat([weight * head[:width] for weight, _, head in members], 1)


@torch.no_grad()
def gradient_products(hidden: Tensor, weight: Tensor, ids: Tensor, sources: Tensor) -> Tensor:
    """(n,) for each token the product of two gradients by the head's weight: of its log-prob, and of the sum of those of `sources`.

    sources: (n,) bool.  It is sum_j <e_i - p_i, e_j - p_j> <h_i, h_j> over the sources j, and costs two passes of the head.
    """
    h = hidden.float()

    def errors(part: slice) -> Tensor:
        # (m, V): onehot - p
        p = (hidden[part] @ weight.T).float().softmax(1)
        return (-p).scatter_add_(1, ids[part, None], torch.ones_like(p[:, :1]))

    # the sources' gradient (V, d) stands for all of them: no token is ever compared with another
    total, parts = torch.zeros_like(weight, dtype=torch.float32), chunks_of(hidden.shape[0], weight)
    for part in parts:
        add_product(total, errors(part) * sources[part, None], h[part])
    return torch.cat([((errors(part) @ total) * h[part]).sum(1) for part in parts])
