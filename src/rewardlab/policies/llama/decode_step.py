"""The inner loop of generation, as one function of tensors: one more token for every row, over a cache of keys and values."""

from types import SimpleNamespace
from typing import List, NamedTuple, Optional, Tuple  # noqa: UP035 - TorchScript knows these names only

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.policies.attributes import mixed
from rewardlab.policies.llama.linear import gated, linear, linear_plus, pack
from rewardlab.policies.llama.model import Llama


class StepLayer(NamedTuple):
    """The weights of a layer as `fold` makes them."""

    qkv: Tensor
    qkv_bias: Optional[Tensor]  # noqa: UP045
    q_norm: Optional[Tensor]  # noqa: UP045
    k_norm: Optional[Tensor]  # noqa: UP045
    out: Tensor
    gate: Tensor
    up: Tensor
    down: Tensor


def fold(model: Llama, dtype: torch.dtype) -> SimpleNamespace:
    """The weights of `Llama.cast` with the norms' weights and attention's 1/sqrt(d) multiplied into them.

    Computed again at each call of generation, since training changes the weights in place.
    """
    # folded in float32 and rounded to `dtype` once, a layer at a time: of large models no more is there in float32
    w, s = model.cast_ends(torch.float32), model.shape
    scale = torch.ones(s.heads + 2 * s.kv_heads, 1, device=w.embed.device)
    if not s.qk_norm:  # a norm after the product would undo the scale: then it goes into q_norm, below
        scale[: s.heads] = s.head_dim**-0.5
    scale = scale.expand(-1, s.head_dim).reshape(-1, 1)
    w.layers = []
    for each in model.layers:
        layer = each.cast(torch.float32)  # type: ignore[operator]
        w.layers.append(layer)
        # W (g * norm(x)) = (W g) norm(x): the norm's weight scales the columns, the query scale the rows
        layer.qkv = (layer.qkv * scale * layer.attn_norm).to(dtype)
        layer.qkv_bias = None if layer.qkv_bias is None else (layer.qkv_bias * scale[:, 0]).to(dtype)
        layer.q_norm = None if layer.q_norm is None else (layer.q_norm * s.head_dim**-0.5).to(dtype)
        layer.k_norm = None if layer.k_norm is None else layer.k_norm.to(dtype)
        layer.gate_up = (layer.gate_up * layer.mlp_norm).to(dtype)
        layer.out, layer.down = layer.out.to(dtype), layer.down.to(dtype)
        layer.attn_norm = layer.mlp_norm = None
    # a value head takes the place of the vocabulary head: its one logit is the value
    w.head = ((w.head if w.value_head is None else mixed(w.value_head.T, model.attributes)[None]) * w.norm).to(dtype)
    w.embed, w.norm, w.cos, w.sin = w.embed.to(dtype), None, w.cos.to(dtype), w.sin.to(dtype)
    return w


def packed(w: SimpleNamespace) -> SimpleNamespace:
    """The same folded weights, with every matrix packed in its place; the two halves of the gated MLP become two."""
    for layer in w.layers:
        layer.gate, layer.up = map(pack, layer.gate_up.chunk(2))
        layer.gate_up = None
        layer.qkv, layer.out, layer.down = map(pack, (layer.qkv, layer.out, layer.down))
    w.head = pack(w.head)
    return w


def step_layers(weights: SimpleNamespace) -> list[StepLayer]:
    """The layers of packed weights, as `next_logits` takes them."""
    return [StepLayer(**{name: getattr(layer, name) for name in StepLayer._fields}) for layer in weights.layers]


def next_logits(
    ids: Tensor,
    position: Tensor,
    mask: Tensor,
    cache: List[Tensor],  # noqa: UP006
    embed: Tensor,
    tables: Tuple[Tensor, Tensor],  # noqa: UP006
    layers: List[StepLayer],  # noqa: UP006
    head: Tensor,
    heads: int,
    eps: float,
) -> Tensor:
    """Float32 logits (n, V) of what follows `ids` (n,) at `position` (n,). Writes their keys and values into the cache.

    cache: of each layer (2, n, Hkv, span, d), keys and values; mask: (n, span), 0 for what a row may see, else -inf.
    """
    return logits_of(through(F.embedding(ids, embed), position, mask, cache, tables, layers, heads, eps), head, eps)


def logits_of(x: Tensor, head: Tensor, eps: float) -> Tensor:
    """Float32 logits (n, V) of what the last layer passes on, (n, hidden)."""
    return linear(F.rms_norm(x, [x.shape[1]], None, eps), head).float()


def through(
    x: Tensor,
    position: Tensor,
    mask: Tensor,
    cache: List[Tensor],  # noqa: UP006
    tables: Tuple[Tensor, Tensor],  # noqa: UP006
    layers: List[StepLayer],  # noqa: UP006
    heads: int,
    eps: float,
) -> Tensor:
    """What some layers make of one token for every row, x (n, hidden); the cache is theirs, otherwise as in `next_logits`."""
    n, kv, span, d = cache[0].shape[1:]
    half, hidden, index, q_k, q_k_v = d // 2, [x.shape[1]], torch.arange(n, device=x.device), heads + kv, heads + 2 * kv
    mask.index_put_((index, position), torch.zeros((), dtype=mask.dtype, device=mask.device))
    # broadcast over key heads and the query heads that share one
    bias = mask.view(n, 1, 1, span)
    # flat indices into the cache seen as (2 * n * Hkv * span, d), for keys and values of every row and head
    place = (torch.arange(2 * n * kv, device=x.device).view(2, n, kv).transpose(0, 1) * span + position.view(n, 1, 1)).reshape(-1)
    # values are rotated by an angle of 0: one product over all heads with full tables takes half the time of skipping the values
    cos, sin = [table[position].unsqueeze(1).repeat(1, q_k_v, 1) for table in tables]
    cos[:, q_k:], sin[:, q_k:] = 1.0, 0.0
    for i, w in enumerate(layers):
        qkv = linear(F.rms_norm(x, hidden, None, eps), w.qkv, w.qkv_bias).view(n, q_k_v, d)
        if w.q_norm is not None and w.k_norm is not None:
            q, k = F.rms_norm(qkv[:, :heads], [d], w.q_norm, eps), F.rms_norm(qkv[:, heads:q_k], [d], w.k_norm, eps)
            qkv = torch.cat((q, k, qkv[:, q_k:]), 1)
        qkv = torch.addcmul(qkv * cos, torch.cat((qkv[..., half:], qkv[..., :half]), -1), sin)
        cache[i].view(-1, d).index_copy_(0, place, qkv[:, heads:].reshape(-1, d))
        keys, values = cache[i].view(2, n * kv, span, d).unbind(0)
        scores = torch.bmm(qkv[:, :heads].reshape(n * kv, -1, d), keys.transpose(1, 2)).view(n, kv, -1, span).add_(bias)
        a = torch.bmm(scores.softmax(-1).view(n * kv, -1, span), values)
        x = linear_plus(a.view(n, heads * d), w.out, x)
        x = linear_plus(gated(F.rms_norm(x, hidden, None, eps), w.gate, w.up), w.down, x)
    return x
