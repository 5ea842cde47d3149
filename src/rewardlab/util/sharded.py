"""Sharded tensors (PyTorch's DTensor, as `fully_shard` makes them)."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def is_divided(x: Any) -> bool:
    """Whether this is a tensor of which this process holds a part."""
    # by what it can do, so that nothing is imported where nothing is divided
    return hasattr(x, "full_tensor")


def whole(x: Any) -> Any:
    """A tensor whose parts may be with several processes, which must all call this."""
    return x.full_tensor() if is_divided(x) else x


def part_of(x: Tensor, like: Any) -> Tensor:
    """This process's part of a whole tensor that all of them have, divided as `like` is."""
    if not is_divided(like):
        return x
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(x.to(like.device), like.device_mesh, like.placements)
