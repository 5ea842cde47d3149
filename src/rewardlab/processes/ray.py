"""Calls over a Ray cluster, each answered once and in order, whatever happens to its processes.

    with RayWorkers("rewardlab.api.verify:judging", "ray:4", about=("math", {})) as workers:
        for answer in workers.stream([(rows,), (more,)]):       ->  Done(...), Done(...)

Ray (Moritz et al. 2018, arXiv:1712.05889; the extra `ray`) places the processes, one core or GPU each, on the machines of the
cluster that this one belongs to (RAY_ADDRESS, or `ray start`); where there is none, on this machine alone, where Ray then listens
on loopback only. All machines need the same version of this package. A process that dies, or whose machine does, is replaced, and
the call that it had not answered is made again. An answer counts once; a call whose process died between doing it and saying so
is done a second time, and only that answer counts.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import WORKERS
from rewardlab.util.extras import require

from .child import ONE_THREAD
from .pool import Done, Failed

TRIES = 3
"""Processes that may die over one call before it counts as failed."""
AHEAD = 4
"""Calls for each process whose answers may wait for that of an earlier one."""
UNUSABLE = "unusable"
"""The kind of a failure that every call would share: the function cannot be imported, or its model not be loaded."""
PATIENCE = 300.0
"""Seconds for the cluster to give the first process."""
CURRENT = Path("/tmp/ray/ray_current_cluster")
"""Where Ray notes the cluster that `ray start` has made this machine part of."""


class RayWorkers:
    """Processes of a Ray cluster that call one function. A context: they end with it."""

    def __init__(self, function: str, where: str, *, about: Sequence[Any] = (), gpu: bool = False):
        """function: "module:name"; called once in each process with `about`, it returns the function that is called from then on.

        where: "ray:N", or "ray" for as many processes as the cluster has cores, or GPUs.  gpu: each gets a GPU, if there are any.
        Raises RewardlabError where Ray is not installed, and for a `where` that names no cluster.
        """
        WORKERS.check("workers", where)
        require("ray", "ray", what="--workers ray")
        self.function, self.about, self.gpu = function, tuple(about), gpu
        self.number = int(where[4:] or 0)
        self.free: list[Any] = []
        self.coming: dict[Any, Any] = {}
        self.busy: dict[Any, tuple[Any, int, Sequence[Any]]] = {}

    def __enter__(self) -> RayWorkers:
        # a program that uses Ray itself keeps its connection
        self.started_here = "ray" not in sys.modules or not sys.modules["ray"].is_initialized()
        if self.started_here:
            _connect(self.number)
        import ray

        room = ray.cluster_resources()
        self.gpu = self.gpu and room.get("GPU", 0) >= 1
        self.number = self.number or max(1, int(room.get("GPU" if self.gpu else "CPU", 1)))
        # into the store of the cluster once, not to each process
        self.said = ray.put((self.function, self.about))
        for _ in range(self.number):
            self._start()
        return self

    def __exit__(self, *problem: Any) -> None:
        import ray

        for worker in [*self.free, *self.coming.values(), *(worker for worker, *_ in self.busy.values())]:
            ray.kill(worker)
        if self.started_here:
            ray.shutdown()

    def stream(self, calls: Iterable[Sequence[Any]]) -> Iterator[Done | Failed]:
        """The answer to every call, in their order. Calls are taken as processes are free for them.

        Raises RewardlabError where the cluster has no room for a process, and where the function cannot be had in it.
        """
        waiting, due = _Waiting(calls), time.monotonic() + PATIENCE
        while True:
            while self.free and (taken := waiting.take(AHEAD * self.number)):
                worker = self.free.pop()
                self.busy[worker.do.remote(self.said, taken[1])] = worker, *taken
            yield from waiting.ready()
            if waiting.over:
                return
            self._attend(waiting)
            if not self.busy and not self.free and time.monotonic() > due:
                raise RewardlabError(f"the Ray cluster had no room for a process in {PATIENCE:g} s: {_room()}")

    def _attend(self, waiting: _Waiting) -> None:
        """Wait for a process that has come, has answered or has died."""
        import ray

        found, _ = ray.wait([*self.busy, *self.coming], timeout=1.0)
        for reference in found:
            if reference in self.coming:
                worker = self.coming.pop(reference)
                # one that died before it came is replaced too
                if _outcome(reference) is None:
                    self._start()
                else:
                    self.free.append(worker)
                continue
            worker, position, call = self.busy.pop(reference)
            if (answer := _outcome(reference)) is None:
                self._start()
                waiting.lost(position, call)
                continue
            self.free.append(worker)
            if isinstance(answer, Failed) and answer.kind == UNUSABLE:
                raise RewardlabError(answer.why)
            waiting.answers[position] = answer

    def _start(self) -> None:
        import ray

        kind = ray.remote(num_cpus=0 if self.gpu else 1, num_gpus=1 if self.gpu else 0, max_restarts=0)(_Worker)
        one_thread = {} if self.gpu else {"runtime_env": {"env_vars": ONE_THREAD}}
        # Ray makes the methods of a process callable from here, which types do not say
        worker: Any = kind.options(**one_thread).remote()
        self.coming[worker.come.remote(not self.gpu)] = worker


class _Waiting:
    """Calls that are not answered yet, by position, and answers that wait for those before them."""

    def __init__(self, calls: Iterable[Sequence[Any]]):
        self.new: Iterator[tuple[int, Sequence[Any]]] = enumerate(calls)
        self.again: list[tuple[int, Sequence[Any]]] = []
        self.answers: dict[int, Done | Failed] = {}
        self.deaths: dict[int, int] = {}
        self.taken = self.given = 0
        self.ended = False

    @property
    def over(self) -> bool:
        """Whether all answers are given."""
        return self.ended and self.given == self.taken

    def take(self, most: int) -> tuple[int, Sequence[Any]] | None:
        """The next call with its position; None while there is none, or `most` answers are out."""
        if self.again:
            return self.again.pop()
        if self.ended or self.taken - self.given >= most:
            return None
        found = next(self.new, None)
        self.ended = found is None
        self.taken += found is not None
        return found

    def ready(self) -> Iterator[Done | Failed]:
        while self.given in self.answers:
            self.given += 1
            yield self.answers.pop(self.given - 1)

    def lost(self, position: int, call: Sequence[Any]) -> None:
        """A process died over this call."""
        self.deaths[position] = self.deaths.get(position, 0) + 1
        if self.deaths[position] < TRIES:
            self.again.append((position, call))
        else:
            self.answers[position] = Failed("crash", f"{TRIES} processes died over it")


class _Worker:
    """What runs in a process of the cluster."""

    call: Callable[..., Any] | None = None

    def come(self, alone: bool) -> bool:
        """Answers when the process is there.  alone: it keeps to a core that no other such process has, as do those it starts."""
        self.core = _claimed_core() if alone else None
        return True

    def do(self, said: tuple[str, tuple[Any, ...]], arguments: Sequence[Any]) -> Done | Failed:
        if self.call is None:
            try:
                module, _, name = said[0].partition(":")
                self.call = getattr(importlib.import_module(module), name)(*said[1])
            except Exception as problem:
                return Failed(UNUSABLE, f"a process of the Ray cluster cannot begin: {_shown(problem)}")
        try:
            return Done(self.call(*arguments))
        except Exception as problem:
            return Failed("error", _shown(problem))


def _claimed_core() -> IO[str] | None:
    """Keep this process to a core; the locked file that says so on this machine, None where all cores are taken."""
    for core in sorted(os.sched_getaffinity(0)):
        file = open(Path(tempfile.gettempdir(), f"rewardlab-{os.getuid()}-core-{core}"), "w")  # noqa: SIM115
        try:
            # gone with the process, however it ends
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        os.sched_setaffinity(0, {core})
        return file
    return None


def _shown(problem: Exception) -> str:
    kind = "" if isinstance(problem, RewardlabError) else f"{type(problem).__name__}: "
    return f"{kind}{' '.join(str(problem).split())[:300]}"


def _outcome(reference: Any) -> Any:
    """What a process has answered; None if it has died."""
    import ray

    try:
        return ray.get(reference)
    except ray.exceptions.RayActorError:
        return None


def _connect(number: int) -> None:
    """Join the cluster that this machine is part of, or start one on this machine alone."""
    # Ray asks on terminals whether it may report its use; nothing here is reported
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    there = "RAY_ADDRESS" in os.environ or CURRENT.exists()
    if not there:
        # read when Ray is imported: without clusters it takes the loopback address, and its servers listen there alone
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    try:
        if there:
            ray.init(address="auto", **quiet)
        else:
            cores = max(number, len(os.sched_getaffinity(0)))
            ray.init(address="local", num_cpus=cores, include_dashboard=False, **quiet)
    except (ConnectionError, ValueError, RuntimeError) as e:
        raise RewardlabError(f"no Ray cluster can be reached or started: {(str(e).splitlines() or [type(e).__name__])[0]}") from e


def _room() -> str:
    import ray

    return ", ".join(f"{amount:g} {name}" for name, amount in ray.available_resources().items() if name in ("CPU", "GPU")) or "none"
