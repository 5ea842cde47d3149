"""Several processes that train together, each forked from a server that has PyTorch loaded."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

PRELOADED = [
    "rewardlab.api.training", "rewardlab.commands.cli", "rewardlab.policies.llama.policy", "rewardlab.rewards.user.external",
    "rewardlab.policies.hf.policy", "transformers.models.auto.tokenization_auto", "transformers.models.llama.modeling_llama",
    "torch.distributed.fsdp", "plotly.offline",
]  # fmt: skip


def together(n: int, logs: Path, work: Callable[..., None], *args: Any, seconds: float = 60) -> list[int]:
    """Call `work(rank, *args)` in n processes of one group; their exit codes, once the last has ended.

    logs: the folder that gets what each prints, rank0.log and so on. A process that takes longer than `seconds` is killed, and
    the test fails.
    """
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(PRELOADED)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started: list[BaseProcess] = [forks.Process(target=_one, args=(rank, n, port, logs, work, args)) for rank in range(n)]
    for process in started:
        process.start()
    due = time.monotonic() + seconds
    for process in started:
        process.join(max(0.0, due - time.monotonic()))
    hanging = [rank for rank, process in enumerate(started) if process.exitcode is None]
    for process in started:
        process.kill()
        process.join()
    assert not hanging, f"ranks {hanging} hang; they said: {[(logs / f'rank{rank}.log').read_text() for rank in hanging]}"
    return [process.exitcode for process in started]


def _one(rank: int, n: int, port: int, logs: Path, work: Callable[..., None], args: tuple[Any, ...]) -> None:
    where = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": n, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in where.items()} | {"LOCAL_WORLD_SIZE": str(n), "OMP_NUM_THREADS": "1"}
    sink = os.open(logs / f"rank{rank}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(sink, 1)
    os.dup2(sink, 2)

    import torch

    torch.set_num_threads(1)
    sys.exit(work(rank, *args))
