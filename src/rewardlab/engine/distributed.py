"""One training over several processes:  torchrun --nproc-per-node 2 -m rewardlab train grpo ...

Every process holds the same model and the same whole batch; only the work is shared out: problems to roll out, groups to score,
micro-batches to run forward and backward. So credit, weights and statistics see all rows, whatever process drew them, and
the gradient is that of one process. Rollouts travel between processes as they are: text, not activations.

Without torchrun every function here does nothing, or all of the work.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

T = TypeVar("T")


def begin() -> None:
    """Join the other processes, if torchrun has started several."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        # a process that ends with the group's threads still running is aborted
        atexit.register(end)


def end() -> None:
    """Leave the other processes; what they still expect of this one must be done."""
    if dist.is_initialized():
        dist.destroy_process_group()


def world() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    return dist.get_rank() if world() > 1 else 0


def first() -> bool:
    """Whether this process is the one that writes, shows and evaluates."""
    return rank() == 0


def mine(items: list[T]) -> list[T]:
    """This process's share of work that all of them know of."""
    return items[rank() :: world()]


def spread(work: Callable[[list[T]], list[Any]], items: list[T]) -> list[Any]:
    """`work(items)` done by all processes, each on its share; every one gets all results, in the order of `items`.

    Where the work gives other than one result for each item, results come in the order of the processes.
    """
    if world() == 1:
        return work(items)
    share = mine(items)
    parts = gathered(work(share) if share else [])
    if all(len(part) == len(items[r :: world()]) for r, part in enumerate(parts)):
        return [parts[i % world()][i // world()] for i in range(len(items))]
    return [x for part in parts for x in part]


def gathered(value: T) -> list[T]:
    """The value of every process, in their order."""
    if world() == 1:
        return [value]
    found: list[Any] = [None] * world()
    dist.all_gather_object(found, value)
    return found


def shared(make: Callable[[], T]) -> T:
    """What the first process makes, given to all."""
    if world() == 1:
        return make()
    box: list[Any] = [make() if first() else None]
    dist.broadcast_object_list(box)
    return box[0]


def total(x: Tensor) -> Tensor:
    """The sum over processes, in place."""
    if world() > 1:
        dist.all_reduce(x)
    return x


def sum_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Add up what the processes' micro-batches gave."""
    if world() == 1:
        return
    for p in parameters:
        if p.requires_grad:
            p.grad = total(torch.zeros_like(p) if p.grad is None else p.grad)
