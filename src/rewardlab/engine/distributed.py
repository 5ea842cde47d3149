"""One training run over several processes:  torchrun --nproc-per-node 2 -m -- rewardlab train grpo ...

Data parallelism in which only the work is sharded: every rank holds the same model and the same whole batch; problems to roll out
and micro-batches to run forward and backward are divided among ranks. So credit, weights and statistics see all rows, whichever
rank sampled them, and the gradient is that of a single process. Ranks exchange rollouts and per-token tables, never activations.

Without a launcher the world size is 1: collectives return their input, and `shard` returns all of the work.

A process that dies closes its connections: the others get an error in the collective that they are in, or in their next one, and
the run resumes from its last checkpoint (`api.resume`), as it would have gone on.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from rewardlab.errors import RewardlabError
from rewardlab.util.device import check_ranks
from rewardlab.util.lockstep import LOCKSTEP
from rewardlab.util.progress import console
from rewardlab.util.ranks import ALONE, left_alone, local_rank, started_together
from rewardlab.util.sharded import is_divided

T = TypeVar("T")

PATIENCE = timedelta(hours=12)
"""How long a process waits in a collective. Rank zero may evaluate, or ask its rewards, for hours while the others wait for it."""


def init() -> None:
    """Join the process group, if a launcher has started several processes: torchrun, accelerate or mpirun (`util/ranks.py`).

    Not where this process works alone: the others wait for what it makes, and would not come.
    Raises RewardlabError where the environment names several processes and does not say how they meet, and where they do not.
    """
    if _alone.get():
        return
    if left_alone():
        console.print(f"warning: {ALONE}", highlight=False, markup=False, soft_wrap=True)
    if started_together() > 1 and not dist.is_initialized():
        backend = "gloo"
        if torch.cuda.is_available():
            check_ranks()
            torch.cuda.set_device(local_rank())
            # objects travel between CPUs, so that nobody waits for rank zero inside NCCL, whose watchdog would end the wait
            backend = "cpu:gloo,cuda:nccl"
        with _reaching_all():
            dist.init_process_group(backend, timeout=PATIENCE)
        leave_at_exit()


def leave_at_exit() -> None:
    """Leave the process group when the process ends: one whose background threads still run then is aborted by NCCL or gloo."""
    atexit.unregister(shutdown)
    atexit.register(shutdown)


@contextmanager
def _reaching_all() -> Iterator[None]:
    """Around collectives: where one of them fails, another process has ended, or cannot be reached."""
    try:
        yield
    except RuntimeError as e:
        # NCCL and the store raise errors of their own; gloo's is a plain one that names its source file, as others do not
        if not isinstance(e, dist.DistError) and "gloo" not in str(e):
            raise
        said = (str(e).splitlines() or [type(e).__name__])[0].partition("] ")[2].partition(". This ")[0]
        raise RewardlabError(f"another process of this run has ended, or cannot be reached any more ({said or e})") from e


def shutdown() -> None:
    """Leave the process group; all collectives must have completed."""
    if dist.is_initialized():
        dist.destroy_process_group()


_alone: ContextVar[bool] = ContextVar("alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Within it this process works by itself, as without a launcher: on what one process makes while the others wait for a file."""
    token = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(token)


def world_size() -> int:
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() and not _alone.get() else 1


def rank() -> int:
    return dist.get_rank() if world_size() > 1 else 0


def is_rank_zero() -> bool:
    """Whether this process is the one that writes files, shows progress and evaluates."""
    return rank() == 0


def shard(items: list[T]) -> list[T]:
    """This rank's part of a list that all ranks hold: every world_size-th item."""
    # strided, not in blocks: parts are sorted by length, so every rank gets long ones and short ones
    return items[rank() :: world_size()]


def map_sharded(work: Callable[[list[T]], list[Any]], items: list[T]) -> list[Any]:
    """`work(items)`, each rank working on its shard; every rank gets all results, in the order of `items`.

    Where `work` returns more or fewer results than items, results come in the order of the ranks.
    """
    if world_size() == 1:
        return work(items)
    own_items = shard(items)
    with in_turns():
        own_results = work(own_items) if own_items else []
    results = all_gather(own_results)
    # undo the sharding: item i was the (i // world size)-th of rank i % world size
    if all(len(part) == len(items[r :: world_size()]) for r, part in enumerate(results)):
        return [results[i % world_size()][i // world_size()] for i in range(len(items))]
    return [x for part in results for x in part]


def all_gather(value: T) -> list[T]:
    """The value of every rank, by rank."""
    if world_size() == 1:
        return [value]
    values: list[Any] = [None] * world_size()
    with _reaching_all():
        dist.all_gather_object(values, value)
    return values


def on_rank_zero(make: Callable[[], T]) -> T:
    """Call `make` on rank zero alone and broadcast its result to all ranks. A RewardlabError is raised on all of them.

    `make` may do so too, as an evaluation does that is part of it: what it does, it does by itself.
    """
    if world_size() == 1:
        return make()
    outcome: list[Any] = [None, None]
    with in_turns():
        if is_rank_zero():
            try:
                with alone():
                    outcome[0] = make()
            except RewardlabError as e:
                # shared, or the other ranks would wait for this one without end
                outcome[1] = e
    with _reaching_all():
        dist.broadcast_object_list(outcome)
    if outcome[1] is not None:
        raise outcome[1]
    return outcome[0]


def all_reduce(x: Tensor) -> Tensor:
    """The sum over ranks, in place."""
    if world_size() > 1:
        with _reaching_all():
            dist.all_reduce(x)
    return x


@contextmanager
def in_turns(learning: bool = False) -> Iterator[None]:
    """Around work that ranks do apart: those with less of it take part in the passes of a divided model until all are done.

    learning: whether each pass of the section goes backward too.
    """
    if _alone.get():
        # the others take no part in it
        yield
        return
    with _reaching_all(), LOCKSTEP.section(learning):
        yield


def sum_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Sum the gradients of all ranks: each holds those of its own micro-batches. Those of divided weights are summed already."""
    if world_size() == 1:
        return
    for p in parameters:
        if p.requires_grad and not is_divided(p):
            # a rank whose micro-batches never touched a parameter still takes part in its all_reduce
            p.grad = all_reduce(torch.zeros_like(p) if p.grad is None else p.grad)
