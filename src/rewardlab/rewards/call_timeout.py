"""Timeouts of calls to the user's functions: a warning where one takes long, an end at its limit."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from rewardlab.errors import RewardlabError
from rewardlab.util.progress import console

NOTICE = 10.0
"""Seconds after which a call is reported; the same function is reported again when a call takes ten times as long."""
TICK = 1.0
"""Seconds between two looks at the calls that are running."""

_reported: dict[str, float] = {}
_watches: list[Watch] = []


class TimedOut(BaseException):
    """A call has reached its limit. Not an Exception, since many functions catch all of those and go on."""


class Watch:
    """A `with` block around calls of one function; `call` marks each of them.

    who: how messages name the function.  file: its source file, for the line where it hangs.  limit: seconds of one call; 0: none.

    A thread looks at the calls. It cannot look while native code holds the interpreter's lock, as `re` does on a pattern that
    backtracks without end; but such code uses the processor, and checks for signals. So the look is repeated in the handler of a
    signal that comes with every second of processor time. The main thread is stopped by that signal too; other threads cannot be
    stopped, so there a call that comes back too late is an error.
    """

    def __init__(self, who: str, file: str, limit: float = 0.0):
        self.who, self.file, self.limit = who, file, limit
        self._running: dict[str, float] = {}
        self._ended = threading.Event()
        self._in_main = threading.current_thread() is threading.main_thread()
        self._thread = threading.Thread(target=self._look_repeatedly, daemon=True)

    def __enter__(self) -> Self:
        _watches.append(self)
        if self._in_main:
            # the handler stays: a signal that arrives after the block would end the process otherwise
            signal.signal(signal.SIGVTALRM, _on_signal)
            signal.setitimer(signal.ITIMER_VIRTUAL, self._tick, self._tick)
        self._thread.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        _watches.remove(self)
        self._ended.set()
        if self._in_main and not _watches:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        if isinstance(error, TimedOut):
            raise self._too_late(str(error), error) from None

    @contextmanager
    def call(self, place: str) -> Iterator[None]:
        """Around one call. place: the rollouts that it scores, in words."""
        self._running[place] = started = time.monotonic()
        try:
            yield
            # not stopped in time, since it ran in another thread or in native code
            if self.limit and time.monotonic() - started >= self.limit:
                raise TimedOut(place)
        finally:
            self._running.pop(place, None)

    def where(self, error: BaseException | None = None) -> str:
        """The function and, for an error that came out of it, the line in its file."""
        frames = traceback.extract_tb(error.__traceback__) if error else []
        # the last frame in the user's file: deeper ones are in libraries that it called
        lines = [frame.lineno for frame in frames if frame.filename == self.file]
        return self.who + (f", line {lines[-1]}" if lines else "")

    def exited(self, error: SystemExit, place: str) -> RewardlabError:
        """What to raise for a call of sys.exit: it would end the training with the status that the function chose."""
        return RewardlabError(f"{self.where(error)}: it called sys.exit({error.code!r}), which would end the run ({place})")

    @property
    def _tick(self) -> float:
        return min(TICK, self.limit / 4) if self.limit else TICK

    def _look_repeatedly(self) -> None:
        while not self._ended.wait(self._tick):
            if self._late() and self._in_main:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGVTALRM)

    def _late(self) -> str | None:
        """Report the slowest call if it is slow; its place if it has reached the limit."""
        # a copy, since calls may end while another thread looks
        place, since = min(self._running.copy().items(), key=lambda item: item[1], default=("", time.monotonic()))
        seconds = time.monotonic() - since
        if seconds >= max(NOTICE, 10 * _reported.get(self.who, 0.0)):
            _reported[self.who] = seconds
            console.print(self._notice(seconds, place), highlight=False, markup=False)
        return place if self.limit and seconds >= self.limit else None

    def _notice(self, seconds: float, place: str) -> str:
        others = len(self._running) - 1
        more = f" and {others} more" if others > 0 else ""
        limit = f"it is stopped after {self.limit:g} s" if self.limit else "there is no limit"
        return f"{self.who} has been at {place}{more} for {seconds:.0f} s; {limit} (--reward-timeout SECONDS)"

    def _too_late(self, place: str, error: BaseException) -> RewardlabError:
        return RewardlabError(
            f"{self.where(error)} took over {self.limit:g} s ({place}). Mend the reward, or give it more time with "
            "--reward-timeout SECONDS (0: no limit); the run can be resumed from its last checkpoint"
        )


def _on_signal(number: int, frame: Any) -> None:
    for watch in list(_watches):
        # this handler runs in the main thread, so it would not stop the calls of another one
        if watch._in_main and (place := watch._late()):
            raise TimedOut(place)
