"""Functions called in processes of their own, under a hard time limit, from any thread.

    pool = workers("rewardlab.kit.symbolic:equal", seconds=3.0)
    pool.map([("1/2", "0.5"), ("x", "y")])  ->  [Done(True), Done(False)]

What takes too long, or brings its process down, is Failed with the reason; its process is killed and replaced, and nobody waits
for it. No signals are used in the caller, nothing is forked from it, and only JSON crosses, so that neither threads nor
text written by a model can do harm. For code written by a model this is not enough: that runs in the sandbox.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import queue
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError

MAIN = Path(__file__).with_name("worker.py")
AHEAD = 16
"""Calls that are sent to a process before the first of them is answered."""
ROOM = 32_768
"""Bytes of such calls; more might not fit the pipe, and writing would then wait for a process that hangs."""
PATIENCE = 60.0
"""Seconds that a process has to import its function."""


class Done(NamedTuple):
    value: Any


class Failed(NamedTuple):
    """kind: "timeout", "crash" (the process died), "error" (the function raised)."""

    kind: str
    why: str


class Workers:
    """`processes` processes that call one function. They start when they are first needed, and end with this process."""

    def __init__(
        self, function: str, *, seconds: float = 5.0, processes: int | None = None, memory: int = 4 << 30, pinned: bool = False
    ):
        """function: "module:name".  seconds: limit of one call.  processes: as many as there are cores.  memory: bytes of address
        space that a process may use; -1 sets no limit.  pinned: each process keeps to a core of its own, and so do pools that
        the function makes there.
        """
        cores = sorted(os.sched_getaffinity(0))
        self.function, self.seconds, self.memory = function, seconds, memory
        self.processes = processes or len(cores)
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for i in range(self.processes):
            self._idle.put(_Worker(self, cores[i % len(cores)] if pinned else None))
        self.owner = os.getpid()
        atexit.register(self.close)

    def map(self, calls: Sequence[Sequence[Any]]) -> list[Done | Failed]:
        """The function's value for every tuple of arguments (plain data), in their order."""
        results: list[Any] = [None] * len(calls)
        waiting = deque(enumerate(calls))
        busy = self._take(len(calls)) if calls else []
        try:
            while waiting or any(worker.out for worker in busy):
                share = min(AHEAD, -(-len(waiting) // len(busy)))
                for worker in busy:
                    worker.feed(waiting, share)
                for worker in _ready(busy):
                    for index, result in worker.collect(waiting):
                        results[index] = result
        except BaseException:
            # answers that come after all must not be taken for the next caller's
            for worker in busy:
                worker.stop()
            raise
        finally:
            for worker in busy:
                self._idle.put(worker)
        return results

    def close(self) -> None:
        if os.getpid() != self.owner:
            # a fork of the process that they belong to
            return
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().stop()

    def _take(self, calls: int) -> list[_Worker]:
        """At least one worker, waited for, and as many more as are idle and of use."""
        taken = [self._idle.get()]
        with contextlib.suppress(queue.Empty):
            while len(taken) < min(self.processes, calls):
                taken.append(self._idle.get_nowait())
        return taken


def workers(function: str, *, seconds: float = 5.0, processes: int | None = None) -> Workers:
    """The pool of this process for a function: made once, and made anew after a fork."""
    return _pool(os.getpid(), function, seconds, processes)


@functools.lru_cache(maxsize=64)
def _pool(process: int, function: str, seconds: float, processes: int | None) -> Workers:
    return Workers(function, seconds=seconds, processes=processes)


class _Worker:
    """One process, and the calls that it was sent and has not answered."""

    def __init__(self, pool: Workers, core: int | None):
        self.pool, self.core = pool, core
        self.process: subprocess.Popen[bytes] | None = None
        self.out: deque[tuple[int, Any]] = deque()
        self.read = b""
        self.sent, self.due = 0, 0.0

    def feed(self, waiting: deque[tuple[int, Any]], share: int) -> None:
        while waiting and len(self.out) < max(1, share):
            line = json.dumps(list(waiting[0][1])).encode() + b"\n"
            if self.out and self.sent + len(line) > ROOM:
                return
            if self.process is None:
                self._start()
            if not self.out:
                self.sent, self.due = 0, time.monotonic() + self.pool.seconds
            self.sent += len(line)
            self.out.append(waiting.popleft())
            assert self.process
            assert self.process.stdin
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.write(line)
                self.process.stdin.flush()

    def collect(self, waiting: deque[tuple[int, Any]]) -> Iterator[tuple[int, Done | Failed]]:
        """What has been answered; a call that was answered too late, or never, fails, and those behind it wait again."""
        assert self.process
        assert self.process.stdout
        dead = False
        if select.select([self.process.stdout], [], [], 0)[0]:
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            dead, self.read = not more, self.read + more
            *lines, self.read = self.read.split(b"\n")
            for line in lines:
                self.due = time.monotonic() + self.pool.seconds
                yield self.out.popleft()[0], _result(line)
        if self.out and (dead or time.monotonic() >= self.due):
            index, _ = self.out.popleft()
            waiting.extendleft(reversed(self.out))
            self.stop()
            yield index, Failed("crash", "the process died") if dead else Failed("timeout", f"took over {self.pool.seconds:g} s")

    def stop(self) -> None:
        self.out.clear()
        self.read = b""
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        process.wait()

    def _start(self) -> None:
        # one thread each: the cores belong to the model.  -P: modules beside the script hide nothing.
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        limits = (self.pool.function, str(self.pool.seconds), str(self.pool.memory), "" if self.core is None else str(self.core))
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(MAIN), *limits], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=os.environ | one, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout
        said = b""
        while not said.endswith(b"\n"):
            ready = select.select([self.process.stdout], [], [], PATIENCE)[0]
            more = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not more:
                self.stop()
                raise RewardlabError(f"a worker process for {self.pool.function} did not start")
            said += more
        if said != b"ready\n":
            self.stop()
            raise RewardlabError(f"a worker process cannot call {self.pool.function}: {said.decode(errors='replace').strip()}")


def _ready(busy: list[_Worker]) -> list[_Worker]:
    """The workers that have something to say, or nothing more to hope for, after waiting for the first of them."""
    asked = [worker for worker in busy if worker.out and worker.process]
    left = max(0.0, min((worker.due for worker in asked), default=0.0) - time.monotonic())
    pipes = {worker.process.stdout: worker for worker in asked if worker.process and worker.process.stdout}
    speaking = select.select(list(pipes), [], [], left)[0]
    now = time.monotonic()
    return [worker for pipe, worker in pipes.items() if pipe in speaking or now >= worker.due]


def _result(line: bytes) -> Done | Failed:
    answer = json.loads(line)
    return Done(answer["is"]) if "is" in answer else Failed("error", answer["error"])
