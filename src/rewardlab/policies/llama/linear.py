"""Matrix products whose weights stay the same over many calls.

A CPU's matrix library (oneDNN) rearranges a matrix for the processor's registers before it multiplies, at every call; with few rows
that takes a good part of the time. `pack` does it once. What follows a product (a bias, SiLU, another factor, a sum) then also runs
inside it, and is rounded once. A matrix that was not packed (on GPUs, or if PyTorch lacks oneDNN) takes the usual path of each
function. Only on x86 are matrices packed: other processors were not measured.
"""

import functools
import platform
from typing import Optional

import torch
import torch.nn.functional as F
from torch import Tensor

X86 = platform.machine().lower() in ("x86_64", "amd64")
PACKS = X86 and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
ROWS = 64
"""The number of rows that a matrix is packed for. Measured from 2 to 1,024 rows, no other value makes products faster."""


@functools.cache
def packed_formats() -> tuple[torch.dtype, ...]:
    """Formats that can be packed: older processors multiply bfloat16 too, but not packed."""
    return (torch.float32, torch.bfloat16) if torch.ops.mkldnn._is_mkldnn_bf16_supported() else (torch.float32,)


def pack(weight: Tensor) -> Tensor:
    """A matrix (out, in) in the layout that the functions below are fast with; no other operation can read it."""
    if not PACKS or weight.device.type != "cpu" or weight.dtype not in packed_formats():
        return weight
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS)


if PACKS:  # TorchScript refuses to compile an operation that this build of PyTorch lacks

    def _then(x: Tensor, weight: Tensor, bias: Optional[Tensor], what: str) -> Tensor:  # noqa: UP045
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, what, [], "")

    def _with(x: Tensor, other: Tensor, weight: Tensor, how: str) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, other, weight, None, how)

else:  # nothing is packed, so these are never called

    def _then(x: Tensor, weight: Tensor, bias: Optional[Tensor], what: str) -> Tensor:  # noqa: UP045
        raise NotImplementedError

    def _with(x: Tensor, other: Tensor, weight: Tensor, how: str) -> Tensor:
        raise NotImplementedError


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:  # noqa: UP045 - TorchScript knows this name only
    """x (n, in) times weight (out, in), plus a bias (out,)."""
    return _then(x, weight, bias, "none") if weight.is_mkldnn else F.linear(x, weight, bias)


def linear_plus(x: Tensor, weight: Tensor, rest: Tensor) -> Tensor:
    """The product plus `rest` (n, out)."""
    return _with(x, rest, weight, "add") if weight.is_mkldnn else rest + F.linear(x, weight)


def gated(x: Tensor, gate: Tensor, up: Tensor) -> Tensor:
    """silu(gate x) * up x, of two matrices (out, in)."""
    if gate.is_mkldnn:
        return _with(x, _then(x, gate, None, "swish"), up, "mul")
    return F.silu(F.linear(x, gate)).mul_(F.linear(x, up))
