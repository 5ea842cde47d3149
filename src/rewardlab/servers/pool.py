"""Worker processes on one queue of calls: each call answered once, hanging ones abandoned, crashed ones repeated."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.processes.forked import Forked
from rewardlab.processes.pool import Done, Failed

AHEAD = 8
"""Calls that a worker takes from the queue at a time."""
TRIES = 3
"""Times that a call may bring its process down before it is given up: a process may also be killed by something else."""
PAUSE = 1.0
"""Seconds until a worker that could not be started is started again."""

LONGEST = 60
"""Seconds after which to try again, at most."""


class Full(RewardlabError):
    """The queue has no room.  after: seconds until it should have."""

    def __init__(self, after: int):
        super().__init__(f"too many calls are waiting; try again in {after} s")
        self.after = after


@dataclass(eq=False)
class Job:
    """Calls that were made together, and what has come of them."""

    calls: Sequence[bytes]
    future: Future[list[Done | Failed]]
    results: list[Done | Failed | None] = field(default_factory=list)
    left: int = 0

    def __post_init__(self) -> None:
        self.results, self.left = [None] * len(self.calls), len(self.calls)


@dataclass(eq=False)
class Item:
    """One call.  tries: how often it has been made, and its process has died."""

    job: Job
    at: int
    tries: int = 0


class Pool:
    """`workers` processes, each looked after by a thread.

    function, arguments, seconds: as of `Forked`.  most: calls that may wait or be made at a time.  counts: calls by how they ended
    (scored, timeout, crash, error), and forks "replaced".
    """

    def __init__(self, function: str, arguments: dict[str, Any], *, workers: int, seconds: float, most: int):
        self.workers = [Forked(function, arguments, seconds=seconds) for _ in range(workers)]
        self.most, self.counts = most, Counter[str]()
        self.open = 0
        self._queue: deque[Item] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._broken: dict[int, str] = {}
        self._ready: set[int] = set()
        self._ended: deque[float] = deque(maxlen=256)
        self._threads = [threading.Thread(target=self._run, args=(i,), name=f"worker {i}", daemon=True) for i in range(workers)]

    def start(self) -> Any:
        """Start the workers, and wait for the first one; what the function says of itself. Raises its RewardlabError."""
        for thread in self._threads:
            thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._ready or len(self._broken) == len(self.workers))
        if not self._ready:
            self.close()
            raise RewardlabError(self._broken[0])
        return self.about

    @property
    def ready(self) -> int:
        """How many workers can take calls."""
        return 0 if self._closed else len(self._ready)

    @property
    def replaced(self) -> int:
        """How many processes have been put in the place of others."""
        return sum(worker.replaced for worker in self.workers)

    def submit(self, calls: Sequence[bytes]) -> Future[list[Done | Failed]]:
        """The results of the calls, to come. Raises Full."""
        job = Job(calls, Future())
        with self._changed:
            if self.open + len(calls) > self.most:
                raise Full(self._until_free())
            self.open += len(calls)
            self._queue.extend(Item(job, i) for i in range(len(calls)))
            self._changed.notify(len(calls))
        if not calls:
            job.future.set_result([])
        return job.future

    def close(self) -> None:
        """End the processes. Calls that still wait fail."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout=10)
        with self._changed:
            self._fail_all("the server was stopped")

    def _run(self, number: int) -> None:
        worker = self.workers[number]
        while self._has_started(number):
            if items := self._take():
                self._settle(items, self._asked(worker, items))
        worker.stop()

    def _asked(self, worker: Forked, items: list[Item]) -> list[Done | Failed | None]:
        try:
            return worker.ask([item.job.calls[item.at] for item in items])
        except Exception as problem:
            # whatever it was, these calls must be answered, and this thread must not end
            worker.stop()
            return [Failed("crash", f"{type(problem).__name__}: {problem}")] * len(items)

    def _has_started(self, number: int) -> bool:
        """Wait until this worker is loaded; False where the pool was closed."""
        worker = self.workers[number]
        while not self._closed and not worker.is_there():
            self._ready.discard(number)
            try:
                about = worker.start()
            except RewardlabError as problem:
                self._has_failed(number, str(problem))
                continue
            with self._changed:
                self.about = about
                self._broken.pop(number, None)
                self._ready.add(number)
                self._changed.notify_all()
        return not self._closed

    def _has_failed(self, number: int, why: str) -> None:
        with self._changed:
            self._broken[number] = why
            if len(self._broken) == len(self.workers):
                self._fail_all(f"no worker process can be started: {why}")
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._closed, PAUSE)

    def _take(self) -> list[Item]:
        """The next calls for one worker: its share of those that wait. None where the pool was closed, or after a second."""
        with self._changed:
            # not for ever: a process that died meanwhile is to be replaced
            self._changed.wait_for(lambda: self._queue or self._closed, PAUSE)
            if self._closed:
                return []
            share = min(AHEAD, math.ceil(len(self._queue) / max(1, len(self._ready))))
            return [self._queue.popleft() for _ in range(share)]

    def _settle(self, items: list[Item], results: list[Done | Failed | None]) -> None:
        again, over = [], []
        for item, result in zip(items, results, strict=True):
            died = isinstance(result, Failed) and result.kind == "crash"
            item.tries += died
            if result is None or (died and item.tries < TRIES):
                again.append(item)
            else:
                over.append((item, result))
        with self._changed:
            self._queue.extendleft(reversed(again))
            if again:
                self._changed.notify(len(again))
            for item, result in over:
                self._end(item, result)

    def _end(self, item: Item, result: Done | Failed) -> None:
        job = item.job
        job.results[item.at] = result
        job.left -= 1
        self.open -= 1
        self._ended.append(time.monotonic())
        self.counts["scored" if isinstance(result, Done) else result.kind] += 1
        # nobody waits for a future that was cancelled, as when the connection of its request has ended, and it takes no result
        if not job.left and job.future.set_running_or_notify_cancel():
            job.future.set_result([r for r in job.results if r is not None])

    def _fail_all(self, why: str) -> None:
        while self._queue:
            self._end(self._queue.popleft(), Failed("stopped", why))

    def _until_free(self) -> int:
        """Seconds, at the pace so far, until half of what is open is done."""
        if not self._ended:
            return 1
        seconds_each = (time.monotonic() - self._ended[0]) / len(self._ended)
        return max(1, min(LONGEST, math.ceil(self.open / 2 * seconds_each)))
