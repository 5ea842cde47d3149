"""Lanes, as the process sees them that has programs to run: as many as cores, shared by all its threads."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import queue
import select
import socket
import subprocess
import sys
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError

UNSAFE = "REWARDLAB_UNSAFE_SANDBOX"
START = """
import sys
sys.path.append(sys.argv[1])
from inside import preloaded
preloaded.load()
from inside import lane
sys.path.pop()
lane.main(int(sys.argv[2]), sys.argv[3] == "unsafe")
"""
AHEAD = 2
"""Jobs that a lane holds: one that runs, and one that it finds when it is done with it."""
PATIENCE = 30.0
"""Seconds that a lane may take to start, or to answer after its job's time is up."""
TRIES = 2


class Job(NamedTuple):
    """kind: "tests" or "program".  files: open files, which the lane hands on."""

    kind: str
    limits: dict[str, float]
    files: tuple[int, ...]


class Lost(NamedTuple):
    """A job brought its lane down, twice."""

    why: str = "the sandbox came down twice under this program"


class Lanes:
    """number: of programs at once.  unsafe: without isolation."""

    def __init__(self, number: int, unsafe: bool = False):
        self.number, self.process = number, os.getpid()
        self._idle: queue.SimpleQueue[_Lane] = queue.SimpleQueue()
        for _ in range(number):
            self._idle.put(_Lane(unsafe))
        atexit.register(self.close)

    def map(self, jobs: Iterator[Job]) -> Iterator[tuple[int, dict[str, Any] | Lost]]:
        """(number of a job, what its lane says), as they are done; a job is only asked for when a lane is free for it."""
        waiting = _Waiting(jobs)
        busy = self._take(1)
        try:
            while True:
                for lane in busy:
                    lane.feed(waiting)
                if waiting.more() and len(busy) < self.number:
                    busy += self._take(0)
                if not any(lane.held for lane in busy):
                    return
                for lane in _ready(busy):
                    yield from lane.collect(waiting)
        except BaseException:
            # answers that come after all must not be taken for the next caller's
            for lane in busy:
                lane.stop()
            raise
        finally:
            for lane in busy:
                self._idle.put(lane)

    def close(self) -> None:
        if os.getpid() != self.process:
            # a fork that ends must not end the lanes it was forked beside
            return
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().stop()

    def _take(self, least: int) -> list[_Lane]:
        """A lane that is waited for, or one more if it is idle."""
        if least:
            return [self._idle.get()]
        with contextlib.suppress(queue.Empty):
            return [self._idle.get_nowait()]
        return []


def lanes() -> Lanes:
    """The lanes of this process, made anew after a fork."""
    return _lanes(os.getpid(), os.environ.get(UNSAFE, "") not in ("", "0"))


@functools.lru_cache(maxsize=4)
def _lanes(process: int, unsafe: bool) -> Lanes:
    if unsafe:
        warnings.warn(
            f"{UNSAFE} is set: programs run WITHOUT isolation; they can read, change and send all that you can", stacklevel=3
        )
    return Lanes(len(os.sched_getaffinity(0)), unsafe)


class _Waiting:
    """Jobs to do, numbered: first those whose lane was lost."""

    def __init__(self, jobs: Iterator[Job]):
        self.jobs = enumerate(jobs)
        self.again: deque[tuple[int, Job]] = deque()
        self.lost: dict[int, int] = {}

    def next(self) -> tuple[int, Job] | None:
        return self.again.popleft() if self.again else next(self.jobs, None)

    def more(self) -> bool:
        if not self.again and (job := next(self.jobs, None)):
            self.again.append(job)
        return bool(self.again)


class _Lane:
    """One lane's process, and the jobs that it holds."""

    def __init__(self, unsafe: bool):
        self.unsafe = unsafe
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.held: deque[tuple[int, Job]] = deque()
        self.due = 0.0

    def feed(self, waiting: _Waiting) -> None:
        while len(self.held) < AHEAD and (job := waiting.next()):
            if self.control is None:
                self.start()
            assert self.control
            if not self.held:
                self.due = _due(job[1])
            self.held.append(job)
            with contextlib.suppress(OSError):
                socket.send_fds(self.control, [json.dumps({"kind": job[1].kind, "limits": job[1].limits}).encode()], job[1].files)

    def collect(self, waiting: _Waiting) -> Iterator[tuple[int, dict[str, Any] | Lost]]:
        """The answer that has come; where none can come any more, the job waits again, or is given up."""
        assert self.control
        said = b""
        if select.select([self.control], [], [], 0)[0]:
            with contextlib.suppress(OSError):
                said = self.control.recv(1 << 16)
        number, job = self.held.popleft()
        if said:
            self.due = _due(self.held[0][1]) if self.held else 0.0
            yield number, json.loads(said)
            return
        waiting.lost[number] = waiting.lost.get(number, 0) + 1
        again = [*self.held] if waiting.lost[number] >= TRIES else [(number, job), *self.held]
        waiting.again.extendleft(reversed(again))
        self.stop()
        if waiting.lost[number] >= TRIES:
            yield number, Lost()

    def start(self) -> None:
        """Raises RewardlabError where this machine cannot isolate."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            options = [str(Path(__file__).parent), str(theirs.fileno()), "unsafe" if self.unsafe else ""]
            # -S: no packages.  -P: nothing of the current folder.  One hash seed, so that verdicts come again.
            self.process = subprocess.Popen(
                [sys.executable, "-S", "-P", "-B", "-c", START, *options], env={"PYTHONHASHSEED": "0"}, cwd="/", close_fds=True,
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        self.control = ours
        said = ours.recv(1 << 16) if select.select([ours], [], [], PATIENCE)[0] else b""
        missing = json.loads(said).get("missing") if said else "its process did not start"
        if missing:
            self.stop()
            raise RewardlabError(
                f"the sandbox refuses to run programs here: {missing}. To run them without isolation, where nothing can be lost or "
                f"stolen, set {UNSAFE}=1 or give --unsafe-sandbox"
            )

    def stop(self) -> None:
        self.held.clear()
        process, control = self.process, self.control
        self.process = self.control = None
        if control is not None:
            control.close()
        if process is not None:
            process.kill()
            process.wait()


def _due(job: Job) -> float:
    return time.monotonic() + job.limits["seconds"] + PATIENCE


def _ready(busy: Sequence[_Lane]) -> list[_Lane]:
    """The lanes that have something to say, or nothing more to hope for, after waiting for the first of them."""
    asked = {lane.control: lane for lane in busy if lane.held and lane.control}
    left = max(0.0, min(lane.due for lane in asked.values()) - time.monotonic())
    poll = select.poll()
    for control in asked:
        poll.register(control, select.POLLIN)
    speaking = {descriptor for descriptor, _ in poll.poll(1000 * left)}
    now = time.monotonic()
    return [lane for control, lane in asked.items() if control.fileno() in speaking or now >= lane.due]
