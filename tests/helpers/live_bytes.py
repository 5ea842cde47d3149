"""The bytes of tensors that are alive at a time, counted operation by operation, forward and backward."""

from __future__ import annotations

from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """In this context: `now`, the bytes of new tensors, `peak`, the most at a time, and `largest`, the most of a single one.

    What a kernel takes for itself is not seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak, self.largest, self._there = 0, 0, dict[int, tuple[StorageWeakRef, int]]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        known = {x.untyped_storage()._cdata for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)}
        for x in tree_leaves(out):
            if isinstance(x, torch.Tensor) and (place := x.untyped_storage()._cdata) not in known:
                self._there[place] = StorageWeakRef(x.untyped_storage()), x.untyped_storage().nbytes()
        self.peak = max(self.peak, self.now)
        self.largest = max(self.largest, 0, *(n for _, n in self._there.values()))
        return out

    @property
    def now(self) -> int:
        self._there = {place: (ref, n) for place, (ref, n) in self._there.items() if not ref.expired()}
        return sum(n for _, n in self._there.values())
