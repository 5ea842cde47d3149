"""Prompts that several rows share, read once before sampling: n replies to a prompt, or n votes of a judge."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.policies.hf.adapters import adapted

FAMILIES = ("llama", "qwen2", "qwen3", "mistral", "gemma", "olmo2", "granite", "smollm3")
"""Kinds of models whose positions are counted from the first real token, and whose layers keep keys and values alone."""
LEAST = 0.5
"""The least share of prompts to be saved: keys and values are copied to each row, which costs time too."""


def read_once(model: Any, prompts: Sequence[np.ndarray], ids: Tensor, mask: Tensor) -> Any:
    """A cache for `generate` beside ids and mask (rows, width), padded on the left: keys and values of all but the last token.

    None where too few rows share a prompt, and for models that keep more than keys and values of all tokens, or less.
    """
    places: dict[bytes, int] = {}
    of = [places.setdefault(p.tobytes(), len(places)) for p in prompts]
    # adapters are modules of the model inside
    inside = model.get_base_model() if adapted(model) else model
    if len(places) > (1 - LEAST) * len(prompts) or min(map(len, prompts)) < 2 or not keeps_all(inside):
        return None
    from transformers import DynamicCache

    first, cache = [of.index(i) for i in range(len(places))], DynamicCache(config=inside.config)
    trunk, real = inside.base_model, mask[first, :-1]
    positions = (real.cumsum(1) - 1).clamp(min=0)
    trunk(input_ids=ids[first, :-1], attention_mask=real, position_ids=positions, use_cache=True, **{cache_name(trunk): cache})
    cache.batch_select_indices(torch.tensor(of, device=ids.device))
    return cache


def cache_name(trunk: Any) -> str:
    """What a model calls the cache that it is given, which was changed in transformers 5."""
    return "cache" if "cache" in inspect.signature(type(trunk).forward).parameters else "past_key_values"


def keeps_all(model: Any) -> bool:
    """Whether every layer keeps keys and values of all tokens in a cache that grows, and nothing else."""
    config = model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    sliding = getattr(config, "sliding_window", None) is not None and getattr(config, "use_sliding_window", True)
    return kinds == {"full_attention"} and not sliding and config.model_type in FAMILIES
