"""A process that loads a function once and calls it in forks: hung or dead ones are replaced within milliseconds.

    process = Forked("rewardlab.servers.scoring:Scorer", {"rewards": ["math"]}, seconds=10.0)
    process.start()  ->  what the function says of itself (`about`)
    process.ask([b'{"response": "4"}', ...])  ->  [Done(...), Failed("timeout", "took over 10 s"), None]

Where loading has begun threads, nothing can be forked: then the whole process is replaced, and loads again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from typing import Any

from rewardlab.errors import RewardlabError

from .child import Call, Child, kill_group
from .pool import Done, Failed, result_of

LOADING = 120.0
"""Seconds that loading may take."""
FORKING = 20.0
"""Seconds that another fork may take to be there, on a busy machine."""
MEMORY = 8 << 30
"""Bytes of data that a fork may hold beside what was loaded, or half of the machine's memory if that is less."""


class Forked:
    """One such process, used by one thread, which must live as long: with it the process ends.

    function: "module:name", called with `arguments` (plain data) for the function that is then called with one value a call.
    seconds: limit of one call.  replaced: how many forks have been.
    """

    def __init__(self, function: str, arguments: dict[str, Any], *, seconds: float):
        self.function, self.arguments, self.seconds = function, arguments, seconds
        self.child: Child | None = None
        self.fork: int | None = None
        self.replaced = 0
        self._batch = 0

    def start(self) -> Any:
        """Load the function; what it says of itself. Raises RewardlabError where it cannot be loaded, or takes too long."""
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.child = Child("-m", "rewardlab.processes.forks")
        self._send({"function": self.function, "arguments": self.arguments, "memory": min(MEMORY, machine // 2)})
        line = self.child.receive(time.monotonic() + LOADING)
        if not line:
            self.stop()
            why = "brought its process down" if line is not None else f"took over {LOADING:g} s"
            raise RewardlabError(f"a worker process did not start: loading {why}")
        document = json.loads(line)
        if "failed" in document:
            self.stop()
            raise RewardlabError(document["failed"])
        if not self._await_fork():
            raise RewardlabError("a worker process did not start: it could not be forked")
        return document["about"]

    def ask(self, calls: Sequence[bytes]) -> list[Done | Failed | None]:
        """The result of each call, a value as JSON. None: not made, since one before it hung or died, and is to be made again."""
        self._batch += 1
        results: list[Done | Failed | None] = [None] * len(calls)
        if not self.is_there():
            return results
        assert self.child
        # what is left of a line that could not be sent whole must not run into this one
        message = b"\n[%d,[%b]]" % (self._batch, b",".join(calls))
        self.child.send(Call(message, self.seconds))
        for position in range(len(calls)):
            answer = self._answer(time.monotonic() + self.seconds)
            if answer is not None and "child" not in answer:
                results[position] = result_of(answer)
                continue
            # calls are made in order, so it was this one
            late = answer is None
            results[position] = Failed("timeout", f"took over {self.seconds:g} s") if late else Failed("crash", "the process died")
            self._replace(answer)
            break
        return results

    def is_there(self) -> bool:
        """Whether it is loaded. What happened since the last call is seen here: a fork that died while it was idle is replaced."""
        while self.child and (line := self.child.receive()) is not None:
            if not line:
                self.stop()
            elif "child" in (answer := _read(line)):
                self.fork = answer["child"]
                self.replaced += 1
        return self.child is not None

    def stop(self) -> None:
        """End the process and its fork."""
        if self.child:
            if self.fork:
                kill_group(self.fork)
            self.child.end()
        self.child = self.fork = None

    def _send(self, message: Any) -> None:
        assert self.child
        self.child.send(Call(json.dumps(message).encode(), self.seconds))

    def _answer(self, due: float) -> dict[str, Any] | None:
        """The next answer of this batch, or {"child": ...} where the fork died; None if there is none by `due`."""
        assert self.child
        while (line := self.child.receive(due)) is not None:
            if not line:
                return {"child": None}
            answer = _read(line)
            # a fork that dies before it reads a batch leaves it to the next one, whose answers come too late
            if "child" in answer or answer.get("batch") == self._batch:
                return answer
        return None

    def _replace(self, answer: dict[str, Any] | None) -> None:
        self.replaced += 1
        if answer and answer["child"]:
            self.fork = answer["child"]
            return
        fork, self.fork = self.fork, None
        if answer is None and fork:
            kill_group(fork)
            if self._await_fork():
                return
        self.stop()

    def _await_fork(self) -> bool:
        """Whether the process has forked, or said that it cannot, and is there."""
        assert self.child
        due = time.monotonic() + FORKING
        while line := self.child.receive(due):
            if "child" in (answer := _read(line)):
                self.fork = answer["child"]
                return True
        self.stop()
        return False


def _read(line: bytes) -> dict[str, Any]:
    """A line; nothing where a fork died in the middle of it."""
    try:
        return json.loads(line)
    except ValueError:
        return {}
