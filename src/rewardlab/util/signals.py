"""Signals that ask this process to stop: Ctrl-C (SIGINT), and SIGTERM, sent by schedulers."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rewardlab.errors import Stopped

STOPPING = (signal.SIGINT, signal.SIGTERM)
ECHO = 1.0
"""Seconds in which a second Ctrl-C may be the first one again: torchrun passes on what the terminal has sent to all."""


def stop_at_once(number: int, frame: Any) -> None:
    """A handler that raises Stopped, so that temporary files are removed and child processes end."""
    raise Stopped(number)


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """A context in which SIGTERM raises Stopped, as Ctrl-C raises KeyboardInterrupt."""
    with _handling(stop_at_once, (signal.SIGTERM,)):
        yield


class Asked:
    """Whether a signal has asked to stop.  number: of that signal, else 0.  doing: what is finished first, as messages name it."""

    def __init__(self, doing: str, quiet: bool, started_together: bool):
        self.number, self.doing, self.quiet = 0, doing, quiet
        self.echo = ECHO if started_together else 0.0
        self.since = 0.0

    def handle(self, number: int, frame: Any) -> None:
        if self.number:
            # schedulers may send SIGTERM several times; those who cannot wait send SIGKILL
            if number == signal.SIGINT and time.monotonic() - self.since > self.echo:
                raise Stopped(number)
            return
        self.number, self.since = number, time.monotonic()
        if not self.quiet:
            asked_by_hand = number == signal.SIGINT
            why, again = ("", "; Ctrl-C again stops now") if asked_by_hand else ("SIGTERM: ", "")
            _say(f"{why}finishing {self.doing}, then saving{again}")


@contextmanager
def stopping_later(doing: str, quiet: bool = False, started_together: bool = False) -> Iterator[Asked]:
    """A context in which signals are noted, and said, instead of stopping the process. A second Ctrl-C raises Stopped.

    quiet: say nothing.  started_together: a launcher may repeat Ctrl-C, which then counts once.
    """
    asked = Asked(doing, quiet, started_together)
    with _handling(asked.handle, STOPPING):
        yield asked


@contextmanager
def stopping_now(asked: Asked) -> Iterator[None]:
    """Within `stopping_later`, a context in which a signal, or one that has come before, raises Stopped all the same."""

    def leave(number: int, frame: Any) -> None:
        again = asked.number
        asked.handle(number, frame)
        if not again:
            raise Stopped(number)

    # none outside of the main thread, and none that others handle
    ours = [number for number in STOPPING if signal.getsignal(number) == asked.handle]
    try:
        for number in ours:
            signal.signal(number, leave)
        if asked.number:
            raise Stopped(asked.number)
        yield
    finally:
        for number in ours:
            signal.signal(number, asked.handle)


@contextmanager
def _handling(handler: Callable[[int, Any], None], numbers: tuple[int, ...]) -> Iterator[None]:
    """Handle signals so in this context, where they would have stopped the process; handlers of others are left in place."""
    # Python lets only the main thread install handlers
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = (signal.SIG_DFL, signal.default_int_handler, stop_at_once)
    before = {number: found for number in numbers if (found := signal.getsignal(number)) in ours}
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, found in before.items():
            signal.signal(number, found)


def _say(text: str) -> None:
    # not print: the signal may have come in the middle of another one
    start = "\n" if sys.stderr is not None and sys.stderr.isatty() else ""
    os.write(2, f"{start}rewardlab: {text}\n".encode())
