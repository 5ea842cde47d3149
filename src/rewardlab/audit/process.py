"""The process that a target runs in: it is killed when a call takes too long, and replaced for the next one.

The target is loaded once, in a process that calls nothing; calls are made in a child of it, which is the one that is replaced.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any, Self

from rewardlab.errors import RewardlabError

from .target import Paid, Row, Spec

LOADING = 30.0
"""Seconds that a target may take to be imported."""
DEATHS = 5
"""Hangs and crashes after which a target is not asked again."""
STARVED = 4
SPARE = 2.0
"""Seconds after the end in which a process may still be replaced."""
MEMORY = 8 << 30
"""Bytes of data that a target may hold, or half of the machine's memory if that is less."""


class Served:
    """A target, asked from outside. Used in a `with` block, at whose end its process is gone, and all that it started.

    seconds: limit of one call.  until: time (of `time.monotonic`) at which nothing is asked any more.
    about: what the target says of itself: name, reads_gold, speaks, concurrent.
    """

    def __init__(self, spec: Spec, seconds: float, until: float):
        self.spec, self.seconds, self.until = spec, seconds, until
        self.process: subprocess.Popen[bytes] | None = None
        self.child: int | None = None
        self.read = b""
        self.deaths, self.messages = 0, False
        self.about: dict[str, Any] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def given_up(self) -> bool:
        return self.deaths >= DEATHS

    def ask(self, rows: Sequence[Row], how: str = "each", until: float | None = None) -> list[Paid | None]:
        """What each row is paid, one by one ("each"), in a thread that is not the main one ("thread"), or in one call
        ("together"). A row that the time did not suffice for is None.
        """
        found: list[Paid | None] = [None] * len(rows)
        end = min(self.until, until or self.until)
        left = list(range(len(rows)))
        while left and not self.given_up and time.monotonic() < end:
            for place, paid in self._once([rows[i] for i in left], how, end):
                found[left[place]] = paid
            left = [i for i in left if found[i] is None]
        return found

    def _once(self, rows: list[Row], how: str, end: float) -> Iterator[tuple[int, Paid]]:
        """Ask once, until all rows have come back, one has taken too long, or the process has died."""
        if self.process is None and not self._again():
            return
        self._send({"rows": [astuple(row) for row in rows], "how": how, "messages": self.messages})
        open_rows = set(range(len(rows)))
        limit = self.seconds * (min(len(rows), 4) if how == "together" else 1)
        while True:
            line = self._answer(limit, end)
            said = json.loads(line) if line else {}
            if not line or "child" in said:
                dead, late = line is not None, time.monotonic() >= end
                self._replace(said)
                if dead or not late:
                    self.deaths += 1
                    what = Paid("crash", None, "the process died") if dead else Paid("hang", None, f"no answer within {limit:g} s")
                    # those that were answered are not in doubt; the first of the others was at work
                    blamed = open_rows if how == "together" else sorted(open_rows)[:1]
                    yield from ((i, what) for i in blamed)
                return
            if said.get("done"):
                yield from ((i, Paid("error", None, "gave no reward")) for i in sorted(open_rows))
                return
            place = said.pop("i")
            open_rows.discard(place)
            yield place, Paid(**said)

    def _answer(self, limit: float, end: float) -> bytes | None:
        """The next line, within the limit; a child that would run but finds all cores taken gets up to `STARVED` times as long."""
        begun = time.monotonic()
        spent = _processor_seconds(self.child)
        last = min(begun + STARVED * limit, max(end, begun + 0.05))
        due = min(begun + limit, last)
        while (line := self._line(due)) is None and due < last:
            left = limit - (_processor_seconds(self.child) - spent)
            if not _wants_to_run(self.child) or left < 0.1 * limit:
                break
            due = min(time.monotonic() + left, last)
        return line

    def _again(self) -> bool:
        try:
            self._start()
        except RewardlabError:
            # it could be loaded before: what it did since has broken that, or there is no time left
            self.deaths = DEATHS
        return not self.given_up

    def _start(self) -> None:
        # one thread each, so that calls are timed alike wherever they run
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rewardlab.audit.serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=os.environ | one, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdin
        os.set_blocking(self.process.stdin.fileno(), False)
        pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._send({"spec": self.spec, "memory": min(MEMORY, pages // 2)})
        line = self._line(min(time.monotonic() + LOADING, self.until))
        if not line:
            self.stop()
            slow = "took too long to import" if line is None else "brought its process down while it was imported"
            raise RewardlabError(f"the target {slow}")
        said = json.loads(line)
        if "failed" in said:
            self.stop()
            raise RewardlabError(f"the target cannot be loaded: {said['failed']}")
        self.about = said
        self._await_child()

    def _replace(self, said: dict[str, Any]) -> None:
        """Get another child in place of one that has died, or that is killed now; or a whole new process for the next call."""
        if "child" in said:
            self.child = said["child"]
        elif self.child is None or time.monotonic() >= self.until:
            self.stop()
        else:
            self._kill(self.child)
            self._await_child()

    def _await_child(self) -> None:
        """Wait for word of a child that is ready, past what another one may have left."""
        due = min(time.monotonic() + LOADING, self.until + SPARE)
        while line := self._line(due):
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                if "child" in said:
                    self.child = said["child"]
                    return
        self.stop()

    def _kill(self, group: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)

    def _send(self, what: dict[str, Any]) -> None:
        """Write a request; a process that does not read it is found out when its answer is waited for."""
        assert self.process
        assert self.process.stdin
        pipe, data = self.process.stdin.fileno(), memoryview(json.dumps(what, default=str).encode() + b"\n")
        with contextlib.suppress(BrokenPipeError):
            while data and select.select([], [pipe], [], self.seconds)[1]:
                data = data[os.write(pipe, data) :]

    def _line(self, due: float) -> bytes | None:
        """The next line of the process; None where none has come by then, empty where the process has ended."""
        assert self.process
        assert self.process.stdout
        while b"\n" not in self.read:
            if not select.select([self.process.stdout], [], [], max(0.0, due - time.monotonic()))[0]:
                return None
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return b""
            self.read = (self.read + more).lstrip(b"\n")
        line, _, rest = self.read.partition(b"\n")
        self.read = rest.lstrip(b"\n")
        return line

    def stop(self) -> None:
        self.read = b""
        process, self.process = self.process, None
        if process is None:
            return
        for group in (process.pid, self.child):
            if group is not None:
                self._kill(group)
        self.child = None
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        process.wait()


def _stat(process: int | None) -> list[str]:
    """What Linux says of a process, from its state on; nothing where it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as file:
        return file.read().rpartition(")")[2].split()
    return []


def _wants_to_run(process: int | None) -> bool:
    return _stat(process)[:1] == ["R"]


def _processor_seconds(process: int | None) -> float:
    found = _stat(process)
    return (int(found[11]) + int(found[12])) / os.sysconf("SC_CLK_TCK") if found else 0.0
