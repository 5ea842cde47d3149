"""The C++ of this folder, compiled once per machine. It is optional: without a compiler PyTorch does its work.

An operation of a small model takes microseconds: PyTorch spends a good part of them on starting it, and on carrying its result to
memory and back.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import torch
from torch import Tensor

from rewardlab.util.files import cached

SOURCES = [Path(__file__).with_name(name) for name in ("decode.cpp", "train.cpp", "kernels.h", "rows.h", "int8.h")]
HEAD_SIZES = (8, 32, 64, 128)
"""What `with_head_size` of kernels.h knows."""
FLAGS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-pthread")
LOOSE = (
    "-fno-math-errno", "-fno-trapping-math", "-fno-signed-zeros", "-fassociative-math", "-freciprocal-math", "-ffinite-math-only",
)  # fmt: skip
"""What lets a compiler vectorise sums and clamps. Not -ffast-math, which would change how the whole process rounds."""
OFF = "REWARDLAB_NATIVE"
"""Set to 0, this variable of the environment leaves everything to PyTorch."""


class _Address:
    """The type of an argument that is a contiguous tensor, or None. The call itself keeps the tensor alive until it returns."""

    @staticmethod
    def from_param(x: Tensor | None) -> ctypes.c_void_p:
        return ctypes.c_void_p(address(x))


_TENSOR, _INT, _STRUCT = _Address, ctypes.c_int64, ctypes.c_void_p
SIGNATURES = {
    "scratch_floats": (_INT, _STRUCT, _INT),
    "forward": (None, _STRUCT, _STRUCT, *[_INT] * 3, *[_TENSOR] * 5),
    "kept_floats": (_INT, _STRUCT, _INT),
    "trunk_scratch_floats": (_INT, _STRUCT, _INT),
    "trunk_forward": (None, _STRUCT, _STRUCT, *[_TENSOR] * 4),
    "trunk_backward": (None, _STRUCT, _STRUCT, *[_TENSOR] * 4, _STRUCT, _TENSOR),
}
"""Of each function: what it returns, and its arguments."""


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled library; None where there is no compiler, or PyTorch brings no BLAS along that it could call."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if os.environ.get(OFF) == "0" or compiler is None or sgemm() is None:
        return None
    try:
        folder = cached(f"native-{_key(compiler)}", lambda new: _compile(compiler, new))
        found = ctypes.CDLL(str(folder / "native.so"))
    # a compiler that fails, a cache that cannot be written: only speed is lost
    except (OSError, subprocess.SubprocessError):
        return None
    for name, (result, *arguments) in SIGNATURES.items():
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    return found


def _compile(compiler: str, folder: Path) -> None:
    command = [compiler, *FLAGS, *LOOSE, *(str(s) for s in SOURCES if s.suffix == ".cpp"), "-o", str(folder / "native.so")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def _key(compiler: str) -> str:
    """What the machine code depends on: the source, the compiler and, by -march=native, the processor."""
    version = subprocess.run([compiler, "--version"], capture_output=True, timeout=20).stdout
    try:
        processor = next(line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith(("flags", "Features")))
    except (OSError, StopIteration):
        processor = ""
    text = b"".join((*(s.read_bytes() for s in SOURCES), version, processor.encode(), repr(FLAGS + LOOSE).encode()))
    return hashlib.blake2b(text, digest_size=6).hexdigest()


@functools.cache
def sgemm() -> int | None:
    """The address of BLAS's matrix product in PyTorch's own library: MKL, where it is built with it."""
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    if not torch.backends.mkl.is_available() or not path.exists():
        return None
    found = getattr(ctypes.CDLL(str(path)), "sgemm_", None)
    return None if found is None else ctypes.cast(found, ctypes.c_void_p).value


def address(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
