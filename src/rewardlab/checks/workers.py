"""Runs in processes of their own: no run can affect another, even by crashing."""

from __future__ import annotations

import functools
import math
import os
import pickle
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardlab.processes.child import ONE_THREAD, Call, Child
from rewardlab.processes.supervisor import Lost, Supervisor
from rewardlab.util.device import SHARED_BY

WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True)
class Failed:
    """The outcome of a job that raised an error or whose process died.  error: its class and its message."""

    error: str

    @property
    def reason(self) -> str:
        """The message alone, where it was written for the user."""
        return self.error.removeprefix("RewardlabError: ")


@dataclass(frozen=True)
class Crew:
    """Processes that work side by side.

    size: how many.  threads: of each.  gpus: those that they are divided among in turn, as CUDA_VISIBLE_DEVICES names them; none:
    each sees what this process sees.  together: how many of them divide the memory of a device.
    """

    size: int
    threads: int = 1
    gpus: tuple[str, ...] = ()
    together: int = 1


def crew_of(processes: int | Crew | None) -> Crew:
    """So many processes of a thread each; None: as many as this process has cores."""
    return processes if isinstance(processes, Crew) else Crew(processes or cores())


_shared: ContextVar[Supervisor | None] = ContextVar("shared processes", default=None)


@contextmanager
def shared_processes(processes: int | Crew | None = None) -> Iterator[None]:
    """Within it, every `run_all` uses the same processes: each of them loads torch and the package once, and not for every stage.

    processes: as of `crew_of`.
    """
    crew = crew_of(processes)
    supervisor = Supervisor(crew.size, functools.partial(_start, crew))
    token = _shared.set(supervisor)
    try:
        yield
    finally:
        _shared.reset(token)
        supervisor.close()


def run_all(
    work: Callable[[Any], Any], jobs: Sequence[Any], processes: int | Crew | None = None
) -> Generator[tuple[int, Any], None, None]:
    """Do all jobs, without a time limit, and yield (position, result or Failed) as each ends.

    work: a function at the top of a module.  processes: as of `crew_of`; those of `shared_processes` within it. Closing the
    generator ends the processes that are at work.
    """
    if not jobs:
        return
    shared, crew = _shared.get(), crew_of(processes)
    supervisor = shared or Supervisor(min(crew.size, len(jobs)), functools.partial(_start, crew))
    try:
        with closing(supervisor.map((_call((work, job)) for job in jobs), len(jobs))) as answers:
            for position, answer in answers:
                yield position, _result(answer)
    finally:
        if shared is None:
            supervisor.close()


def _start(crew: Crew, number: int) -> Child:
    env = {**dict.fromkeys(ONE_THREAD, str(crew.threads)), SHARED_BY: str(crew.together)}
    if crew.gpus:
        env["CUDA_VISIBLE_DEVICES"] = crew.gpus[number % len(crew.gpus)]
    # -P: this folder is not on sys.path, where its modules could hide others; stderr is shared, so that warnings are seen
    child = Child("-P", str(WORKER), env=env, stderr=None)
    # a worker imports its modules from where this process does
    child.send(_call((sys.path, crew.threads)))
    return child


def cores() -> int:
    """Cores that this process may use."""
    # a container or taskset may allow fewer cores than the machine has
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _call(value: Any) -> Call:
    # pickle is safe here: both ends are this program, and nothing written by a model is unpickled
    return Call(b64encode(pickle.dumps(value)), math.inf)


def _result(answer: bytes | Lost) -> Any:
    if isinstance(answer, Lost):
        return Failed(f"its process ended with exit code {answer.exit_code}")
    ok, value = pickle.loads(b64decode(answer))
    return value if ok else Failed(value)
