"""Sampling tokens, with two log-probs each: under the raw policy, and under the distribution sampled from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rewardlab.core import Sampling
from rewardlab.policies.scripting import scripted
from rewardlab.util.device import moved


def sample(logits: Tensor, sampling: Sampling, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(ids, raw log-probs, sampled log-probs), each (n,), from float32 logits (n, V). Overwrites `logits`.

    uniform: (n,) float64 in [0, 1), one random number for each row.
    """
    # now, while the GPU still computes the logits
    uniform = moved(uniform, logits.device)
    if sampling.raw:
        ids, logp = scripted(inverse_cdf, logits.device.type)(logits, uniform)
        return ids, logp, logp
    if sampling.temperature == 0:
        # greedy: the distribution sampled from is a point, of log-prob 0
        ids = logits.argmax(1)
        raw = logits.gather(1, ids[:, None]).squeeze(1) - logits.logsumexp(1)
        return ids, raw, torch.zeros_like(raw)
    normaliser = logits.logsumexp(1)
    # a copy, since the raw log-probs are still read from `logits`
    warped = warp(logits.clone(), sampling)
    ids, sampled = scripted(inverse_cdf, logits.device.type)(warped, uniform)
    return ids, logits.gather(1, ids[:, None]).squeeze(1) - normaliser, sampled


def warp(logits: Tensor, sampling: Sampling) -> Tensor:
    """Temperature, then top-k, then top-p, as transformers applies them; in place."""
    logits /= sampling.temperature
    if 0 < sampling.top_k < logits.shape[1]:
        least = logits.topk(sampling.top_k, 1).values[:, -1:]
        logits.masked_fill_(logits < least, -torch.inf)
    if sampling.top_p < 1.0:
        ordered, order = logits.sort(1)
        # ascending order: what adds up to 1 - top_p from below is cut off
        below = ordered.softmax(1).cumsum(1) <= 1.0 - sampling.top_p
        # the most likely token is never removed, however small top_p is
        below[:, -1] = False
        logits.masked_fill_(below.scatter(1, order, below), -torch.inf)
    return logits


def nucleus(logits: Tensor, top_p: float, always: Sequence[int] = ()) -> Tensor:
    """(n, V) bool: the fewest tokens of each row of `logits` (n, V) that have top_p between them, and `always`. Overwrites them."""
    allowed = warp(logits, Sampling(top_p=top_p)) > -torch.inf
    allowed[:, list(always)] = True
    return allowed


def inverse_cdf(logits: Tensor, uniform: Tensor, size: int = 128) -> tuple[Tensor, Tensor]:
    """(ids, log-probs): one uniform per row through the inverse CDF, searched by blocks of `size` entries. Overwrites `logits`.

    torch.multinomial generates a random number per vocabulary entry; at 49k entries that costs more than a small model's layers.
    """
    p = logits.sub_(logits.amax(1, keepdim=True)).exp_()
    n, vocab = p.shape
    if vocab % size:
        # padded entries have probability 0 and are never chosen
        p = torch.nn.functional.pad(p, (0, size - vocab % size))
    blocks = p.view(n, -1, size)
    # in float64: rounding errors of a float32 sum over the vocabulary would exceed small probabilities
    ends = blocks.sum(2).double().cumsum(1)
    total = ends[:, -1:]
    u = uniform.to(logits.device)[:, None] * total
    # clamped: u may round up to the total, which is past the last block
    block = torch.searchsorted(ends, u, right=True).clamp_(max=ends.shape[1] - 1)
    before = torch.where(block > 0, ends.gather(1, (block - 1).clamp(min=0)), 0.0)
    inside = blocks.gather(1, block[:, :, None].expand(-1, -1, size)).squeeze(1)
    steps = inside.double().cumsum(1)
    within = torch.searchsorted(steps, (u - before).clamp(min=0), right=True)
    # `before` and `inside` are rounded differently, so the search may end past the last entry with any probability
    last = size - 1 - (inside > 0).flip(1).int().argmax(1, keepdim=True)
    ids = block * size + torch.minimum(within, last)
    logp = (p.gather(1, ids).double() / total).log()
    return ids.squeeze(1), logp.squeeze(1).float()
