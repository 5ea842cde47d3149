"""`native.cpp`: the forward pass of generation in C++, compiled once per machine. Optional: without a compiler PyTorch does it.

An operation of a small model takes microseconds, of which PyTorch spends a good part on starting it.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from rewardlab.util.files import cached

from .model import Shape

SOURCE = Path(__file__).with_name("native.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC")
LOOSE = (
    "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math", "-ffinite-math-only",
)  # fmt: skip
"""What lets a compiler vectorise sums and clamps. Not -ffast-math, which would change how the whole process rounds."""
OFF = "REWARDLAB_NATIVE"
"""Set to 0, this variable of the environment leaves everything to PyTorch."""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled library; None where there is no compiler, or PyTorch brings no BLAS along that it could call."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if os.environ.get(OFF) == "0" or compiler is None or _sgemm() is None:
        return None
    try:
        folder = cached(f"native-{_key(compiler)}", lambda new: _compile(compiler, new))
        found = ctypes.CDLL(str(folder / "native.so"))
    # a compiler that fails, a cache that cannot be written: only speed is lost
    except (OSError, subprocess.SubprocessError):
        return None
    found.forward.restype, found.scratch_floats.restype = None, ctypes.c_int64
    return found


def _compile(compiler: str, folder: Path) -> None:
    command = [compiler, *FLAGS, *LOOSE, str(SOURCE), "-o", str(folder / "native.so")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def _key(compiler: str) -> str:
    """What the machine code depends on: the source, the compiler and, by -march=native, the processor."""
    version = subprocess.run([compiler, "--version"], capture_output=True, timeout=20).stdout
    try:
        processor = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        processor = ""
    text = b"".join((SOURCE.read_bytes(), version, processor.encode(), repr(FLAGS + LOOSE).encode()))
    return hashlib.blake2b(text, digest_size=6).hexdigest()


@functools.cache
def _sgemm() -> int | None:
    """The address of BLAS's matrix product in PyTorch's own library: MKL, where it is built with it."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if not torch.backends.mkl.is_available() or not path.exists():
        return None
    return ctypes.cast(getattr(ctypes.CDLL(str(path)), "sgemm_", None), ctypes.c_void_p).value


class _Layer(ctypes.Structure):
    NAMES = ("qkv", "qkv_bias", "q_norm", "k_norm", "out", "gate_up", "down")
    _fields_ = [(name, ctypes.c_void_p) for name in NAMES]


class _Model(ctypes.Structure):
    SIZES = ("hidden", "heads", "kv_heads", "head_dim", "mlp", "vocab", "layers")
    TABLES = ("embed", "head", "cos", "sin")
    _fields_ = [
        ("sgemm", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in SIZES),
        ("eps", ctypes.c_double),
        *((name, ctypes.c_void_p) for name in TABLES),
        ("layer", ctypes.POINTER(_Layer)),
    ]


class Native:
    """The forward pass over a cache, for folded weights in float32 (`fold`) on the CPU."""

    def __init__(self, library: ctypes.CDLL, shape: Shape, weights: SimpleNamespace):
        self.library = library
        # referred to by address alone: the tensors must live as long as this object
        self.weights = [{name: _contiguous(getattr(layer, name)) for name in _Layer.NAMES} for layer in weights.layers]
        self.tables = {name: _contiguous(getattr(weights, name)) for name in _Model.TABLES}
        self.layers = (_Layer * shape.layers)(*(_Layer(**{k: _address(w) for k, w in layer.items()}) for layer in self.weights))
        sizes = {name: getattr(shape, name) for name in _Model.SIZES}
        addresses: dict[str, Any] = {name: _address(table) for name, table in self.tables.items()}
        self.model = _Model(sgemm=_sgemm(), eps=shape.eps, layer=self.layers, **sizes, **addresses)
        self.vocab = shape.vocab

    def forward(
        self, cache: Sequence[Tensor], ids: Tensor, slots: Tensor, positions: Tensor, predict: bool = True
    ) -> Tensor | None:
        """Write the keys and values of tokens (n,) into the cache; their logits (n, V) if asked to `predict`.

        A row's tokens come in order. cache: of each layer (2, slots, Hkv, span, d).
        """
        n, (size, span) = len(ids), (cache[0].shape[1], cache[0].shape[3])
        model = ctypes.byref(self.model)
        scratch = torch.empty(self.library.scratch_floats(model, ctypes.c_int64(span)))
        logits = torch.empty(n, self.vocab) if predict else None
        tables = (ctypes.c_void_p * len(cache))(*map(_address, cache))
        addresses = [ctypes.c_void_p(_address(x)) for x in (ids, slots, positions, scratch, logits)]
        self.library.forward(model, tables, *map(ctypes.c_int64, (size, span, n)), *addresses)
        return logits


def _contiguous(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.contiguous()


def _address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
