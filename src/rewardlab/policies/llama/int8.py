"""Weights in 8 bits, for models that only answer: `int8:` before a model's name.

A step of sampling few rows lasts as long as reading the weights, of which there is then half as much. Each weight is a whole number
from -127 to 127 times the scale of its 32 neighbours in a row of the matrix (round to nearest; the form of llama.cpp's Q8_0, with
scales in bfloat16). It is multiplied by `native/int8.h`. The vocabulary head is rounded too; embeddings, of which a token reads one
row, are not. Prompts, and texts that are scored, are read with the weights as they are; of earlier replies of a conversation what
was computed as they were sampled is kept (`kept.py`).

Such a model cannot be trained: what it samples has not the log-probs of the policy that would learn.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rewardlab.errors import RewardlabError
from rewardlab.policies.llama.decode_step import fold
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.native.library import HEAD_SIZES, library

GROUP = 32
"""Neighbours in a row that share a scale (`Int8::GROUP` in native/int8.h)."""
PREFIX = "int8:"
CANNOT_TRAIN = (
    f"a model with weights in 8 bits ({PREFIX}) samples from another distribution than the weights that would learn: leave out "
    f"{PREFIX} in training, and use it to answer, search, evaluate or serve"
)
MATRICES = ("qkv", "out", "gate_up", "down")


def in_int8(model: Any) -> bool:
    """Whether a model, or a model's name, has weights in 8 bits."""
    return model.startswith(PREFIX) if isinstance(model, str) else getattr(model, "int8", None) is not None


def rounded(matrix: Tensor) -> Tensor:
    """(out, in) as bytes (out, in * 17 / 16): a row's whole numbers, then its scales in bfloat16."""
    groups = matrix.float().view(len(matrix), -1, GROUP)
    # rounded up, so that no number exceeds 127: bfloat16 has 8 bits
    scales = (groups.abs().amax(2) / 127 * (1 + 2**-8)).bfloat16()
    inverse = torch.where(scales > 0, 1 / scales.float(), 0.0)
    numbers = (groups * inverse[:, :, None]).round().to(torch.int8).flatten(1)
    return torch.cat((numbers.view(torch.uint8), scales.view(torch.uint8)), 1)


def prepared(model: Llama, device: torch.device, dtype: torch.dtype) -> SimpleNamespace:
    """The folded weights of a model that will not change, as `fold` makes them, with `int8`: those that steps read.

    Raises RewardlabError for a device or a shape for which there are no products in 8 bits, and without a C++ compiler.
    """
    s = model.shape
    widths = {"hidden_size": s.hidden, "intermediate_size": s.mlp, "heads times head_dim": s.heads * s.head_dim}
    odd = ", ".join(f"{name} {width}" for name, width in widths.items() if width % GROUP)
    why = ""
    if device.type != "cpu":
        why = f"they are for CPUs, and the device is {device.type}"
    elif library() is None:
        why = "they need a C++ compiler (g++ or clang++), and a PyTorch with MKL"
    elif s.head_dim not in HEAD_SIZES or odd:
        why = f"heads must have {', '.join(map(str, HEAD_SIZES))} numbers and widths be multiples of {GROUP}: "
        why += odd or f"head_dim is {s.head_dim}"
    elif model.value_head is not None:
        why = "they are for sampling, and the model has a value head"
    if why:
        raise RewardlabError(f"weights in 8 bits ({PREFIX}) cannot be had here: {why}; leave out {PREFIX}")
    with torch.no_grad():
        weights = fold(model, dtype)
        layers = [
            SimpleNamespace(**vars(layer) | {name: rounded(getattr(layer, name)) for name in MATRICES}) for layer in weights.layers
        ]
    weights.int8 = SimpleNamespace(layers=layers, head=rounded(weights.head))
    return weights
