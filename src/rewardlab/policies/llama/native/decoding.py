"""`decode.cpp` called from Python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rewardlab.policies.llama.model import Shape
from rewardlab.policies.llama.native.library import address, sgemm


class _Layer(ctypes.Structure):
    NAMES = ("qkv", "qkv_bias", "q_norm", "k_norm", "out", "gate_up", "down")
    VECTORS = ("qkv_bias", "q_norm", "k_norm")
    _fields_ = [(name, ctypes.c_void_p) for name in NAMES]


class _Model(ctypes.Structure):
    SIZES = ("hidden", "heads", "kv_heads", "head_dim", "mlp", "vocab", "layers")
    TABLES = ("embed", "head", "cos", "sin")
    VECTORS = ("cos", "sin")
    _fields_ = [
        ("sgemm", ctypes.c_void_p),
        ("format", ctypes.c_int64),
        ("threads", ctypes.c_int64),
        *((name, ctypes.c_int64) for name in SIZES),
        ("eps", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in TABLES),
        ("layer", ctypes.POINTER(_Layer)),
    ]


LIBRARY, ROWS, INT8 = 0, {torch.float32: 1, torch.bfloat16: 2}, 3
"""How matrices are multiplied (`Format` in decode.cpp): by PyTorch's library, or by rows.h, by the format of the weights."""
STRIDE = 16
"""What the widths of matrices must be a multiple of for rows.h."""


class Decoding:
    """The forward pass over a cache in float32, for folded weights (`fold`) on the CPU.

    threads: those that share each product with a few rows, whose matrices may be bfloat16, or bytes (`int8.rounded`) beside
    embeddings in bfloat16; None: PyTorch's library multiplies, by one thread, in float32.
    """

    def __init__(self, library: ctypes.CDLL, shape: Shape, weights: SimpleNamespace, threads: int | None = None):
        self.library = library
        # referred to by address alone: the tensors must live as long as this object
        self.weights = [
            {name: _contiguous(getattr(layer, name), name in _Layer.VECTORS) for name in _Layer.NAMES} for layer in weights.layers
        ]
        self.tables = {name: _contiguous(getattr(weights, name), name in _Model.VECTORS) for name in _Model.TABLES}
        self.layers = (_Layer * shape.layers)(*(_Layer(**{k: address(w) for k, w in layer.items()}) for layer in self.weights))
        sizes = {name: getattr(shape, name) for name in _Model.SIZES}
        addresses: dict[str, Any] = {name: address(table) for name, table in self.tables.items()}
        how = {"format": LIBRARY if threads is None else ROWS.get(weights.head.dtype, INT8), "threads": threads or 1}
        self.model = _Model(sgemm=sgemm(), eps=shape.eps, layer=self.layers, **how, **sizes, **addresses)
        self.vocab = shape.vocab

    def forward(
        self, cache: Sequence[Tensor], ids: Tensor, slots: Tensor, positions: Tensor, predict: bool = True
    ) -> Tensor | None:
        """Write the keys and values of tokens (n,) into the cache; their logits (n, V) if asked to `predict`.

        A row's tokens come in order. cache: of each layer (2, slots, Hkv, span, d).
        """
        n, (size, span) = len(ids), (cache[0].shape[1], cache[0].shape[3])
        model = ctypes.byref(self.model)
        scratch = torch.empty(self.library.scratch_floats(model, span))
        logits = torch.empty(n, self.vocab) if predict else None
        tables = (ctypes.c_void_p * len(cache))(*map(address, cache))
        self.library.forward(model, tables, size, span, n, ids, slots, positions, scratch, logits)
        return logits


def _contiguous(x: Tensor | None, as_float: bool) -> Tensor | None:
    return None if x is None else (x.float() if as_float else x).contiguous()
