"""Jobs in processes of their own, one thread each: what one run does cannot reach another, not even by crashing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Failed:
    """What became of a job that has no result."""

    error: str


def run_all(
    work: Callable[[Any], Any], jobs: Sequence[Any], processes: int | None = None
) -> Generator[tuple[int, Any], None, None]:
    """Do all jobs, and yield (position, result or Failed) as each ends.

    work: a function at the top of a module.  processes: how many at a time; None: as many as this process has cores.
    Closing the generator ends the processes.
    """
    left = deque(enumerate(jobs))
    crew: dict[Connection, tuple[BaseProcess, int]] = {}
    try:
        for _ in range(min(processes or cores(), len(jobs))):
            _hand_out(crew, left, *_hire(work))
        while crew:
            for pipe in wait(list(crew)):
                assert isinstance(pipe, Connection)
                process, position = crew.pop(pipe)
                outcome, alive = _receive(pipe, process)
                if left:
                    _hand_out(crew, left, *((pipe, process) if alive else _hire(work)))
                elif alive:
                    pipe.send(None)
                yield position, outcome
    finally:
        for process, _ in crew.values():
            process.terminate()
            process.join()


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _hire(work: Callable[[Any], Any]) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, work))
    with _one_thread(), _deaf():
        process.start()
    theirs.close()
    return ours, process


def _hand_out(crew: dict, left: deque, pipe: Connection, process: BaseProcess) -> None:
    position, job = left.popleft()
    crew[pipe] = (process, position)
    # a process that has died meanwhile is noticed when it is asked for the result
    with contextlib.suppress(BrokenPipeError):
        pipe.send(job)


def _receive(pipe: Connection, process: BaseProcess) -> tuple[Any, bool]:
    """The result or Failed, and whether the process lives on."""
    try:
        return pipe.recv(), True
    except (EOFError, ConnectionResetError):
        process.join()
        return Failed(f"its process ended with exit code {process.exitcode}"), False


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Processes started within read this while they import numpy and torch, before any code of theirs runs."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Processes started within do not hear Ctrl-C, which reaches all of a terminal's: this one answers it, by ending them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    import torch

    from rewardlab.util import progress

    torch.set_num_threads(1)
    progress.console.quiet = True
    # the parent's stdout is a document
    os.dup2(2, 1)
    with contextlib.suppress(EOFError, BrokenPipeError, KeyboardInterrupt):
        while (job := pipe.recv()) is not None:
            try:
                outcome = work(job)
            except Exception as e:
                outcome = Failed(f"{type(e).__name__}: {' '.join(str(e).split())}")
            pipe.send(outcome)
