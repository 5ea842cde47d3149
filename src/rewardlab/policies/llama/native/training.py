"""`train.cpp` as a function that PyTorch can differentiate."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rewardlab.policies.llama.model import Llama, Shape
from rewardlab.policies.llama.native.library import HEAD_SIZES, address, library, sgemm

LAYER = ("attn_norm", "qkv", "out", "mlp_norm", "gate_up", "down")


class _Layer(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in LAYER]


class _Trunk(ctypes.Structure):
    SIZES = ("hidden", "heads", "kv_heads", "head_dim", "mlp", "layers")
    _fields_ = [
        ("sgemm", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in SIZES),
        ("eps", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in ("cos", "sin", "norm")),
        ("layer", ctypes.POINTER(_Layer)),
    ]


class _Tokens(ctypes.Structure):
    _fields_ = [("n", ctypes.c_int64), ("most_seen", ctypes.c_int64), ("positions", ctypes.c_void_p), ("seen", ctypes.c_void_p)]


def supports(model: Llama) -> bool:
    """Whether the C++ has what this model needs."""
    s = model.shape
    return not s.qk_norm and not s.qkv_bias and s.head_dim in HEAD_SIZES and library() is not None


def layers(model: Llama, w: SimpleNamespace, x: Tensor, positions: Tensor, seen: Tensor) -> Tensor:
    """Hidden states (n, hidden) after all layers and the last norm, with gradient, of embedded tokens x (n, hidden).

    seen: (n, 4), which tokens each one sees: from the first index to the second (a shared prompt), and from the third to the
    fourth, which is its own plus one. Whatever a token sees comes before it.
    """
    weights = [getattr(layer, name) for layer in w.layers for name in LAYER]
    return _Layers.apply(model.shape, (w.cos, w.sin), positions, seen, x, w.norm, *weights)


class _Layers(torch.autograd.Function):
    """Backward skips tokens whose gradient is 0: those of groups whose replies all got the same reward, for one."""

    @staticmethod
    def forward(ctx, shape: Shape, rope: tuple[Tensor, Tensor], positions: Tensor, seen: Tensor, *tensors: Tensor) -> Tensor:
        x, *weights = (t.detach().contiguous() for t in tensors)
        call = _Call(shape, rope, positions, seen)
        trunk = call.trunk(weights)
        kept, hidden = torch.empty(call.library.kept_floats(trunk, len(x))), torch.empty_like(x)
        call.library.trunk_forward(trunk, call.tokens, x, kept, hidden, call.scratch(trunk))
        ctx.call = call
        ctx.save_for_backward(kept, *weights)
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx, d_hidden: Tensor) -> tuple[Tensor | None, ...]:
        call: _Call = ctx.call
        kept, *weights = ctx.saved_tensors
        d_hidden, gradients = d_hidden.contiguous(), [torch.zeros_like(w) for w in weights]
        trunk, into, d_x = call.trunk(weights), call.trunk(gradients), torch.zeros_like(d_hidden)
        s = call.shape
        d_qkv = torch.zeros(s.layers, len(d_hidden), (s.heads + 2 * s.kv_heads) * s.head_dim)
        call.library.trunk_backward(trunk, call.tokens, kept, d_qkv, d_hidden, d_x, into, call.scratch(trunk))
        return None, None, None, None, d_x, *gradients


class _Call:
    """The arguments of the C++. It knows addresses alone: the tensors must live as long as this object."""

    def __init__(self, shape: Shape, rope: tuple[Tensor, Tensor], positions: Tensor, seen: Tensor):
        found = library()
        assert found is not None
        self.library, self.shape = found, shape
        self.rope, self.positions, self.seen = [t.contiguous() for t in rope], positions.contiguous(), seen.contiguous()
        self.most_seen = int((seen[:, 1] - seen[:, 0] + seen[:, 3] - seen[:, 2]).max())
        self.tokens = ctypes.byref(_Tokens(len(seen), self.most_seen, address(self.positions), address(self.seen)))

    def trunk(self, weights: Sequence[Tensor]) -> Any:
        """Weights, or the tensors of their gradients: the last norm's, then each layer's."""
        s, n = self.shape, len(LAYER)
        rows = [map(address, weights[1 + i * n : 1 + (i + 1) * n]) for i in range(s.layers)]
        layer = (_Layer * s.layers)(*(_Layer(*row) for row in rows))
        sizes = [getattr(s, name) for name in _Trunk.SIZES]
        return ctypes.byref(_Trunk(sgemm(), *sizes, s.eps, *map(address, self.rope), address(weights[0]), layer))

    def scratch(self, trunk: Any) -> Tensor:
        return torch.empty(self.library.trunk_scratch_floats(trunk, self.most_seen))
