"""The process of `forked.py`: it loads a function and calls it in a fork, which alone is replaced."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

Send = Callable[[dict[str, Any]], None]

PR_SET_PDEATHSIG = 1
ENDING = 0.5
"""Seconds for threads that loading has begun to end."""
CLOSED = 83
"""Exit code of a fork when there are no more calls."""


def main() -> None:
    calls, send = exchanged_lines()
    setup = json.loads(calls.readline())
    try:
        function = load(setup["function"], setup["arguments"])
    except BaseException as problem:
        send({"failed": said(problem)})
        return
    send({"about": getattr(function, "about", None)})
    if not is_fork(send, setup["memory"]):
        return
    for line in calls:
        # the rest of a line that a fork before this one had begun to read is not JSON
        with contextlib.suppress(ValueError):
            batch, arguments = json.loads(line)
            for argument in arguments:
                send({"batch": batch, **answered(function, argument)})
    os._exit(CLOSED)


def exchanged_lines() -> tuple[BinaryIO, Send]:
    """Lines to read and a way to send some, in place of the standard streams, in a process that dies with its parent.

    What is loaded may print without being taken for an answer, and cannot read our lines.
    """
    calls = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    lock = threading.Lock()

    def send(message: dict[str, Any]) -> None:
        # a fork before this one may have died in the middle of a line
        line = b"\n" + json.dumps(message).encode() + b"\n"
        with lock:
            answers.write(line)

    die_with_parent()
    return calls, send


def is_fork(send: Send, memory: int) -> bool:
    """Fork for as long as forks die before they have read all lines. True in a fork, False when the last has ended.

    Where nothing can be forked it is this process that is to read the lines: True too.
    memory: bytes of data that a fork may hold beside what was loaded, be it large.
    """
    while (child := fork_if_alone()) != 0:
        send({"child": child})
        if child is None:
            break
        _, status = os.waitpid(child, 0)
        if os.waitstatus_to_exitcode(status) == CLOSED:
            return False
    # in the fork alone, so that one that exceeds it can be replaced by another
    most = data_bytes() + memory
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return True


def data_bytes() -> int:
    """Bytes of data that this process has, as the kernel counts them for RLIMIT_DATA."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:"))


def load(function: str, arguments: dict[str, Any]) -> Callable[[Any], Any]:
    """What `module:name` makes of the arguments: the function to call."""
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)(**arguments)


def answered(function: Callable[[Any], Any], argument: Any) -> dict[str, Any]:
    """{"is": value} or {"error": why}; a value that JSON cannot hold is an error too, and so is an exit."""
    try:
        found = {"is": function(argument)}
        json.dumps(found, allow_nan=False)
        return found
    except BaseException as problem:
        return {"error": said(problem)}


def said(problem: BaseException) -> str:
    from rewardlab.errors import RewardlabError

    text = " ".join(str(problem).split())[:400]
    return text if isinstance(problem, RewardlabError) else f"{type(problem).__name__}: {text}".rstrip(": ")


def fork_if_alone() -> int | None:
    """Fork, so that a child that hangs or dies can be replaced without loading anything again. 0 in the child.

    None, and no fork, where threads have begun: they would not be there in the child.
    """
    _end_of_loading()
    if len(os.listdir("/proc/self/task")) > 1:
        return None
    parent = os.getpid()
    child = os.fork()
    # a group of its own, from both sides: whoever is told of the child may end its group at once
    with contextlib.suppress(OSError):
        os.setpgid(child, child)
    if child == 0:
        die_with_parent()
        # the parent may have died before the kernel was asked to say so
        if os.getppid() != parent:
            os._exit(1)
    return child


def _end_of_loading() -> None:
    """Wait for threads that are about to end, and end that of progress bars, which loading a model has begun."""
    bars: Any = getattr(sys.modules.get("tqdm"), "tqdm", None)
    if monitor := getattr(bars, "monitor", None):
        monitor.exit()
        bars.monitor = None
    due = time.monotonic() + ENDING
    while threading.active_count() > 1 and time.monotonic() < due:
        time.sleep(0.01)


def die_with_parent() -> None:
    """Have the kernel kill this process with its parent: nothing else would end a function that hangs."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main()
