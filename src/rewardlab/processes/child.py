"""A child process that exchanges lines over its standard streams, and is killed together with all processes it has started."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

from rewardlab.util.ranks import for_children

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a child: a single thread, to leave the cores to the model that trains beside it."""
LONGEST_WAIT = (1 << 31) - 1
"""Milliseconds: the most that poll() takes."""


class Call(NamedTuple):
    """message: bytes for the child.  seconds: limit for the answer; math.inf: none.  files: open files to pass."""

    message: bytes
    seconds: float
    files: tuple[int, ...] = ()


class Child:
    """A Python process. One message is one line, in both directions; empty lines are skipped."""

    def __init__(self, *command: str, env: Mapping[str, str] | None = None, stderr: int | None = subprocess.DEVNULL):
        """command: Python's own arguments.  env: variables besides those of this process.  stderr: as for Popen."""
        self.process = subprocess.Popen(
            [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, bufsize=0,
            env={**os.environ, **ONE_THREAD, **for_children(), **(env or {})}, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin
        assert self.process.stdout
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        # non-blocking: a process that does not read must not make the caller wait without end
        os.set_blocking(self.stdin, False)
        self.lines: deque[bytes] = deque()
        self.rest = b""

    def fileno(self) -> int:
        return self.stdout

    def send(self, *calls: Call) -> None:
        """Write a line for each. A process that has died, or does not read, is noticed when its answer is awaited."""
        unsent = memoryview(b"".join([call.message + b"\n" for call in calls]))
        with contextlib.suppress(BrokenPipeError):
            while unsent:
                try:
                    unsent = unsent[os.write(self.stdin, unsent) :]
                except BlockingIOError:
                    # the pipe is full: wait for the process to read, but no longer than the first call may take
                    if not readable(self.stdin, time.monotonic() + calls[0].seconds, select.POLLOUT):
                        return

    def receive(self, due: float = 0.0) -> bytes | None:
        """The next line. None: none has come by `due` (of time.monotonic).  b"": the process has closed its end."""
        while not self.lines:
            if not readable(self.stdout, due):
                return None
            if not (chunk := os.read(self.stdout, 1 << 16)):
                return b""
            # a read may end within a line: the part after the last line break waits for more
            *lines, self.rest = (self.rest + chunk).split(b"\n")
            self.lines.extend(filter(None, lines))
        return self.lines.popleft()

    def end(self) -> int:
        """Kill the process and its group, unless it has ended. Returns its exit code, negative for a signal."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()
        return kill(self.process)


def kill(process: subprocess.Popen[Any]) -> int:
    """Kill a process that leads a group, with the group, and wait for it. Returns its exit code."""
    # once it was waited for, its number may belong to another process
    if process.returncode is None:
        kill_group(process.pid)
    return process.wait()


def kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def readable(descriptor: int, due: float, event: int = select.POLLIN) -> bool:
    """Whether a descriptor can be read (or an `event` happens) by `due`, of time.monotonic. A closed one counts as readable."""
    return bool(ready([descriptor], due, event))


def ready(descriptors: list[int], due: float, event: int = select.POLLIN) -> set[int]:
    """Those of the descriptors that can be read, after waiting for the first of them until `due`."""
    # poll() and not select(), which takes no descriptor above 1023
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, event)
    seconds = max(0.0, due - time.monotonic())
    return {descriptor for descriptor, _ in poll.poll(min(1000 * seconds, LONGEST_WAIT))}
