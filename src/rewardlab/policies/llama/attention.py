"""Attention over complete texts, for training and prefill."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

SQUARE_ELEMENTS = 1 << 25
"""Attention scores that the plain product may hold at once: 128 MB in float32."""


def causal_attention(q: Tensor, k: Tensor, v: Tensor, scale: float | None = None) -> Tensor:
    """q (B, T, Hq, d), k and v (B, T, Hkv, d) -> (B, T, Hq, d); query heads share key heads by groups; scale: 1/sqrt(d).

    On CPUs the plain product of matrices is several times faster than PyTorch's fused kernel (its backward pass above all),
    as long as the square of scores is small; long texts take the fused kernel.
    """
    rows, width, heads, _ = q.shape
    if q.device.type == "cpu" and rows * heads * width * width <= SQUARE_ELEMENTS:
        return _plain(q, k, v, scale, _future(width, q.dtype))
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    if q.device.type == "cuda" and q.dtype == torch.float32:
        k, v = _for_each_head(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=q.shape[1] != k.shape[1]).transpose(1, 2)


def attention(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, scale: float | None = None) -> Tensor:
    """The same with q (B, R, Hq, d), k and v (B, S, Hkv, d) and `seen` (B, R, S): which keys a query may see, one at least."""
    if q.device.type == "cpu" and seen.numel() * q.shape[2] <= SQUARE_ELEMENTS:
        bias = torch.zeros(seen.shape, dtype=q.dtype, device=q.device).masked_fill_(~seen, -torch.inf)
        return _plain(q, k, v, scale, bias[:, None, None])
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    k, v = _for_each_head(q, k, v)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen[:, None], scale=scale).transpose(1, 2)


def _for_each_head(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Keys and values (B, Hkv, S, d) as (B, Hq, S, d).

    The fused kernel of GPUs that takes a mask, or float32, knows no shared heads (`check_batch_size_and_num_heads_dense<false>` in
    PyTorch's sdp_utils.cpp): with them PyTorch would form the whole square of scores.
    """
    share = q.shape[1] // k.shape[1]
    return (k, v) if share == 1 else (k.repeat_interleave(share, 1), v.repeat_interleave(share, 1))


def _plain(q: Tensor, k: Tensor, v: Tensor, scale: float | None, bias: Tensor) -> Tensor:
    """bias: 0 where a query may attend, else -inf; broadcast to (B, Hkv, Hq / Hkv, R, S)."""
    rows, width, heads, d = q.shape
    span, kv = k.shape[1:3]
    share = heads // kv
    # scaling q costs T x d products per head; scaling the scores would cost T x T
    q = (q * (d**-0.5 if scale is None else scale)).view(rows, width, kv, share, d).permute(0, 2, 3, 1, 4)
    k, v = (x.transpose(1, 2).reshape(rows * kv, span, d) for x in (k, v))
    # the query heads that share a key head are stacked into one matrix: one batched product, no copies of k and v
    scores = torch.bmm(q.reshape(rows * kv, share * width, d), k.transpose(1, 2)).view(rows, kv, share, width, span)
    out = torch.bmm((scores + bias).softmax(-1).view(rows * kv, share * width, span), v)
    return out.view(rows, kv, share, width, d).permute(0, 3, 1, 2, 4).reshape(rows, width, heads, d)


@functools.lru_cache(maxsize=64)
def _future(width: int, dtype: torch.dtype) -> Tensor:
    """(T, T): 0 for keys up to the query's position, -inf for later ones."""
    # a cached tensor that was made in inference mode could not be used in training later
    with torch.inference_mode(False):
        return torch.full((width, width), -torch.inf, dtype=dtype).triu_(1)
