"""Products with matrices that stay the same over many calls.

A CPU's matrix library (oneDNN) lays a matrix out for the processor's registers before it multiplies, at every call anew; for
few rows that takes a good part of the time. `pack` does it once. What follows a product (a bias, SiLU, another factor, a sum)
then also runs within it, and is rounded once. A matrix that was not packed (on GPUs, or where PyTorch lacks oneDNN) takes the
usual path of each function. Of processors other than x86, where this was not measured, none is packed.
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
"""What a matrix is laid out for; measured from 2 to 1,024 rows, no other number makes a product faster."""


@functools.cache
def _packed_formats() -> tuple[torch.dtype, ...]:
    """Older processors multiply bfloat16 too, but not in this form."""
    return (torch.float32, torch.bfloat16) if torch.ops.mkldnn._is_mkldnn_bf16_supported() else (torch.float32,)


def pack(weight: Tensor) -> Tensor:
    """A matrix (out, in) as the functions below are fast with; nothing else can read it."""
    if not PACKS or weight.device.type != "cpu" or weight.dtype not in _packed_formats():
        return weight
    return torch.ops.mkldnn._reorder_linear_weight(weight.contiguous(), ROWS)


if PACKS:  # TorchScript compiles no operation that is not there

    def _then(x: Tensor, weight: Tensor, bias: Optional[Tensor], what: str) -> Tensor:  # noqa: UP045
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, what, [], "")

    def _with(x: Tensor, other: Tensor, weight: Tensor, how: str) -> Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, other, weight, None, how)

else:  # nothing is packed, so nothing comes here

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
