"""Call functions in separate processes, under a hard time limit, from any thread.

    pool = workers("operator:eq", seconds=3.0)
    pool.map([(1, 1.0), ("x", "y")])  ->  [Done(True), Done(False)]

A call that takes too long, or brings its process down, is Failed with the reason; its process is killed and replaced, and no other
call waits for it. The caller uses no signals and is never forked, and only JSON crosses, so neither threads nor text written by a
model can do harm. For code written by a model this is not enough: that runs in the sandbox.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError

from .child import Call, Child
from .supervisor import Lost, Supervisor, per_process

WORKER = Path(__file__).with_name("worker.py")
AHEAD = 16
"""Calls that are sent to a process before the first of them is answered."""


class Done(NamedTuple):
    value: Any


class Failed(NamedTuple):
    """kind: "timeout", "crash" (the process died), "error" (the function raised)."""

    kind: str
    why: str


class Workers:
    """`processes` processes that call one function. They start when they are first needed, and end with this process."""

    def __init__(
        self, function: str, *, seconds: float = 5.0, processes: int | None = None, memory: int = 4 << 30, pinned: bool = False,
        patience: float = 60.0, env: Mapping[str, str] | None = None,
    ):  # fmt: skip
        """function: "module:name".  seconds: limit of one call.  processes: by default one per core.  memory: bytes of address
        space that a process may use; -1 sets no limit.  pinned: each process keeps to a core of its own, and so do pools that
        the function makes there.  patience: seconds to import the function.  env: environment variables for the processes.
        """
        self.function, self.seconds, self.memory, self.pinned = function, seconds, memory, pinned
        self.patience, self.env = patience, env
        self.cores = sorted(os.sched_getaffinity(0))
        self.supervisor = Supervisor(processes or len(self.cores), self._start, ahead=AHEAD)

    def map(self, calls: Sequence[Sequence[Any]], seconds: float | None = None) -> list[Done | Failed]:
        """The function's value for every tuple of arguments (plain data), in their order. seconds: the limit for these calls."""
        limit = self.seconds if seconds is None else seconds
        results: list[Any] = [None] * len(calls)
        messages = (Call(json.dumps([limit, *arguments]).encode(), limit) for arguments in calls)
        for position, answer in self.supervisor.map(messages, len(calls)):
            results[position] = _result(answer, limit)
        return results

    def close(self) -> None:
        """End the processes that are idle; another call starts them anew."""
        self.supervisor.close()

    def _start(self, number: int) -> Child:
        core = str(self.cores[number % len(self.cores)]) if self.pinned else ""
        # -P keeps the script's folder off sys.path, where its modules could shadow what the function imports
        child = Child("-P", str(WORKER), self.function, str(self.memory), core, env=self.env)
        hello = child.receive(time.monotonic() + self.patience)
        if hello != b"ready":
            child.end()
            problem = (
                f"cannot call {self.function}: {hello.decode(errors='replace')}"
                if hello
                else f"for {self.function} did not start within {self.patience:g} s"
            )
            raise RewardlabError(f"a worker process {problem}")
        return child


@per_process
def workers(function: str, *, seconds: float = 5.0, processes: int | None = None) -> Workers:
    """The pool of this process for a function: made once, and made anew after a fork."""
    return Workers(function, seconds=seconds, processes=processes)


def _result(answer: bytes | Lost, limit: float) -> Done | Failed:
    if isinstance(answer, Lost):
        # without an exit code the process had not died: the supervisor killed it
        late = answer.exit_code is None
        return Failed("timeout", f"took over {limit:g} s") if late else Failed("crash", "the process died")
    return result_of(json.loads(answer))


def result_of(reply: Mapping[str, Any]) -> Done | Failed:
    """What `worker.answer` says, as a result."""
    return Done(reply["is"]) if "is" in reply else Failed("error", reply["error"])
