"""Child processes under supervision: started when needed, kept busy, killed when late, replaced when they die.

All child processes are managed here. A `Connection` defines what a process runs and how messages reach it: lines over pipes
(`child.py`), or a socket that also passes open files (`sandbox/workers.py`).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import queue
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar

from .child import Call, readable, ready

P = ParamSpec("P")
T = TypeVar("T")

PIPE = 32_768
"""Bytes of calls that may wait in a pipe, which holds 64 KiB: with more, writing could block on a process that hangs."""


class Lost(NamedTuple):
    """Stands for a missing answer. exit_code: that of the process that died; None: the call took too long."""

    exit_code: int | None


class Connection(Protocol):
    """A running process, ready for calls, which it answers in their order."""

    def fileno(self) -> int:
        """The descriptor that its answers can be read from."""

    def send(self, *calls: Call) -> None:
        """Send calls without waiting for answers; that a process has died is noticed in `receive`."""

    def receive(self) -> bytes | None:
        """The next answer. None: there is none yet.  b"": no more can come."""

    def end(self) -> int:
        """Kill the process and all that it started. Returns its exit code."""


class Supervisor:
    """Processes that answer calls. They belong to the process that made this object, and end with it.

    number: of processes.  start: starts the i-th one; it may raise, and `map` then raises too.  ahead: calls that a process is
    sent before it has answered the first of them, so that it need not wait for us.  tries: how often a call is made before it
    counts as lost.
    """

    def __init__(self, number: int, start: Callable[[int], Connection], *, ahead: int = 1, tries: int = 1):
        self.number, self.ahead, self.tries = number, ahead, tries
        self.owner = os.getpid()
        self._idle: queue.SimpleQueue[_Slot] = queue.SimpleQueue()
        for i in range(number):
            self._idle.put(_Slot(functools.partial(start, i)))
        atexit.register(self.close)

    def map(self, calls: Iterable[Call], total: int) -> Generator[tuple[int, bytes | Lost], None, None]:
        """(position of a call, its answer or Lost), as they come. From any thread.

        calls: `total` of them, each taken when a process is free for it.  Closing the generator kills the busy processes.
        """
        waiting, busy = _Waiting(calls, total), list[_Slot]()
        try:
            while waiting.left or any(slot.sent for slot in busy):
                self._recruit(busy, waiting)
                # the same share for each, so that no process is left with all of the last calls
                share = max(1, min(self.ahead, -(-waiting.left // len(busy))))
                for slot in busy:
                    slot.feed(waiting, share)
                for slot in _to_attend(busy):
                    yield from slot.collect(waiting, self.tries)
        except BaseException:
            # an answer still to come would be taken for one of the next caller's
            for slot in busy:
                slot.stop()
            raise
        finally:
            for slot in busy:
                self._idle.put(slot)

    def close(self) -> None:
        """End the idle processes; another call starts them anew."""
        # a forked copy of this process also runs this at exit, and must not end its parent's children
        if os.getpid() == self.owner:
            slots = []
            with contextlib.suppress(queue.Empty):
                while True:
                    slots.append(self._idle.get_nowait())
            for slot in slots:
                slot.stop()
                self._idle.put(slot)

    def _recruit(self, busy: list[_Slot], waiting: _Waiting) -> None:
        """Take idle slots while there are calls for them: at least one, waiting for it if necessary."""
        free = sum(not slot.sent for slot in busy)
        with contextlib.suppress(queue.Empty):
            while not busy or free < waiting.left:
                busy.append(self._idle.get(block=not busy))
                busy[-1].renew()
                free += 1


class _Waiting:
    """Calls that no process has been sent, numbered by position. Those put back come first."""

    def __init__(self, calls: Iterable[Call], total: int):
        self.new = enumerate(calls)
        self.back: deque[tuple[int, Call]] = deque()
        self.left = total
        self.losses: dict[int, int] = {}

    def take(self) -> tuple[int, Call]:
        self.left -= 1
        return self.back.popleft() if self.back else next(self.new)

    def put_back(self, calls: Sequence[tuple[int, Call]]) -> None:
        self.left += len(calls)
        self.back.extendleft(reversed(calls))

    def lost(self, position: int) -> int:
        """Count a loss of this call; returns how many there are now."""
        self.losses[position] = self.losses.get(position, 0) + 1
        return self.losses[position]


class _Slot:
    """One process (started when needed) and the calls that it was sent and has not answered."""

    def __init__(self, start: Callable[[], Connection]):
        self.start = start
        self.connection: Connection | None = None
        self.sent: deque[tuple[int, Call]] = deque()
        # due: time.monotonic() by which the first of `sent` must be answered; 0.0: not known yet
        self.bytes, self.due = 0, 0.0

    def feed(self, waiting: _Waiting, share: int) -> None:
        new: list[Call] = []
        while waiting.left and len(self.sent) < share:
            position, call = waiting.take()
            if self.sent and self.bytes + len(call.message) > PIPE:
                waiting.put_back([(position, call)])
                break
            if self.connection is None:
                self.connection = self.start()
            if not self.sent:
                self.bytes, self.due = 0, time.monotonic() + call.seconds
            self.sent.append((position, call))
            self.bytes += len(call.message)
            new.append(call)
        if new and self.connection:
            self.connection.send(*new)

    def collect(self, waiting: _Waiting, tries: int) -> Iterator[tuple[int, bytes | Lost]]:
        """The answers that have come. If no more can come, the call is tried again or lost, and those behind it wait again."""
        assert self.connection
        message: bytes | None = None
        while self.sent and (message := self.connection.receive()):
            position, call = self.sent.popleft()
            self.bytes -= len(call.message)
            # the process starts the next call now: its time limit is set below
            self.due = 0.0
            yield position, message
        if not self.due and self.sent:
            self.due = time.monotonic() + self.sent[0][1].seconds
        if not self.sent or (message is None and time.monotonic() < self.due):
            return
        (position, call), *behind = self.sent
        # calls are answered in order, so it was the first that hung or crashed; those behind it are blameless
        again = waiting.lost(position) < tries
        waiting.put_back([(position, call), *behind] if again else behind)
        exit_code = self.stop()
        if not again:
            yield position, Lost(exit_code if message is not None else None)

    def renew(self) -> None:
        """Drop a process that died while idle. An idle process sends nothing, so a readable descriptor means that it is closed."""
        if self.connection and readable(self.connection.fileno(), due=0.0):
            self.stop()

    def stop(self) -> int | None:
        self.sent.clear()
        connection, self.connection = self.connection, None
        return connection.end() if connection else None


def _to_attend(busy: Sequence[_Slot]) -> list[_Slot]:
    """The slots with something to receive, or whose time is up, after waiting for the first of them."""
    waiting = [slot for slot in busy if slot.sent and slot.connection]
    descriptors = {slot.connection.fileno(): slot for slot in waiting if slot.connection}
    readable_now = ready(list(descriptors), min((slot.due for slot in waiting), default=0.0))
    now = time.monotonic()
    return [slot for descriptor, slot in descriptors.items() if descriptor in readable_now or now >= slot.due]


def per_process(make: Callable[P, T]) -> Callable[P, T]:
    """Cache what `make` returns, by arguments and process: after a fork the child makes its own."""

    @functools.lru_cache(maxsize=64)
    def made(process: int, args: tuple[Any, ...], options: tuple[tuple[str, Any], ...]) -> T:
        return make(*args, **dict(options))

    @functools.wraps(make)
    def of_this_process(*args: P.args, **options: P.kwargs) -> T:
        return made(os.getpid(), args, tuple(options.items()))

    return of_this_process
