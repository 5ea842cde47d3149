"""The process of a target: killed when a call takes too long, and replaced for the next one.

The target is loaded once, in a process that makes no calls; calls are made in a fork of it, and only the fork is replaced.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from typing import Any, Self

from rewardlab.audit.target import RewardResult, Row, Spec, named
from rewardlab.errors import RewardlabError
from rewardlab.processes.child import Call, Child, kill_group

LOADING = 30.0
"""Seconds that a target may take to be loaded, where its audit may not take longer."""
DEATHS = 5
"""Hangs and crashes after which a target is not called again."""
MOST_STRETCH = 4
"""Times the limit that a call may take on a machine whose cores are all busy."""
FEW = 8
"""Rows at a time of a target that cannot be forked."""
SPARE = 2.0
"""Seconds after the end of the audit in which a process may still be replaced."""
MEMORY = 8 << 30
"""Bytes of data that a target may hold, or half of the machine's memory if that is less."""


class TargetProcess:
    """A target in a process of its own. Used in a `with` block, whose end kills the process and all that it started.

    seconds: limit of one call.  budget: seconds from when the target is loaded, after which no calls are made (`until`, of
    `time.monotonic`).  loading: seconds that it took to load.
    about: the target's own data: name, reads_gold, messages, concurrent.  spent: what a served model was asked, by each fork.
    """

    def __init__(self, spec: Spec, seconds: float, budget: float):
        self.spec, self.seconds, self.budget = spec, seconds, budget
        self.until, self.loading = math.inf, 0.0
        self.child: Child | None = None
        self.fork: int | None = None
        self.deaths = 0
        self.about: dict[str, Any] = {}
        self.spent: dict[int | None, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        begun = time.monotonic()
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        self.loading = time.monotonic() - begun
        self.until = time.monotonic() + self.budget
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def given_up(self) -> bool:
        return self.deaths >= DEATHS

    def ask(self, rows: Sequence[Row], how: str = "each", until: float | None = None) -> list[RewardResult | None]:
        """The reward of each row, called one by one ("each"), in a thread that is not the main one ("thread"), or in one call
        ("together"). None for rows that there was no time for.
        """
        results: list[RewardResult | None] = [None] * len(rows)
        end = min(self.until, until or self.until)
        remaining = list(range(len(rows)))
        while remaining and not self.given_up and time.monotonic() < end:
            now, until = remaining, end
            if self.child is not None and self.fork is None and how != "together":
                # one that cannot be forked would be loaded again, where it is killed in the middle of many rows
                now, until = remaining[:FEW], self.until
            for place, result in self._once([rows[i] for i in now], how, until):
                results[now[place]] = result
            remaining = [i for i in remaining if results[i] is None]
        return results

    def _once(self, rows: list[Row], how: str, end: float) -> Iterator[tuple[int, RewardResult]]:
        """Send one request, and yield results until all rows have one, a row takes too long, or the process dies."""
        if self.child is None and not self._restart():
            return
        self._send({"rows": [astuple(row) for row in rows], "how": how})
        missing = set(range(len(rows)))
        # a batch takes longer than one row, but not in proportion
        limit = self.seconds * (min(len(rows), 4) if how == "together" else 1)
        while True:
            line = self._answer(limit, end)
            answer = json.loads(line) if line else {}
            if spent := answer.pop("spent", None):
                self.spent[self.fork] = spent
            if not line or "child" in answer:
                died, late = line is not None, time.monotonic() >= end
                self._replace(answer)
                if died or not late:
                    self.deaths += 1
                    why = "the process died" if died else f"no answer within {limit:g} s"
                    result = RewardResult("crash" if died else "hang", None, why)
                    # rows are scored in order, so the first one without a result was being scored
                    yield from ((i, result) for i in (missing if how == "together" else sorted(missing)[:1]))
                return
            if answer.get("done"):
                yield from ((i, RewardResult("error", None, "gave no reward")) for i in sorted(missing))
                return
            place = answer.pop("i")
            missing.discard(place)
            yield place, RewardResult(**answer)

    def _answer(self, limit: float, end: float) -> bytes | None:
        """The next line, within the limit; a fork that is ready to run but gets no core has up to `MOST_STRETCH` times as long."""
        assert self.child
        started, cpu_at_start = time.monotonic(), _cpu_seconds(self.fork)
        latest = min(started + MOST_STRETCH * limit, max(end, started + 0.05))
        due = min(started + limit, latest)
        while (line := self.child.receive(due)) is None and due < latest:
            cpu_left = limit - (_cpu_seconds(self.fork) - cpu_at_start)
            # sleeping, or out of processor time of its own: the machine is not to blame for the delay
            if not _is_runnable(self.fork) or cpu_left < 0.1 * limit:
                break
            due = min(time.monotonic() + cpu_left, latest)
        return line

    def _restart(self) -> bool:
        try:
            self._start()
        except RewardlabError:
            if time.monotonic() >= self.until:
                return False
            # it could be loaded before: it has broken something since
            self.deaths = DEATHS
        return not self.given_up

    def _start(self) -> None:
        begun, self.child = time.monotonic(), Child("-m", "rewardlab.audit.serve")
        machine_memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self._send({"spec": self.spec, "memory": min(MEMORY, machine_memory // 2)})
        line = self.child.receive(min(time.monotonic() + max(LOADING, self.budget), self.until))
        if not line:
            self.stop()
            if line is not None:
                raise RewardlabError(f"the target {named(self.spec)} brought its process down while it was imported")
            raise RewardlabError(
                f"the target {named(self.spec)} was not loaded after {time.monotonic() - begun:.0f} s: give it more time, "
                f"--seconds S (loading may take as long as the audit itself, and {LOADING:g} s in any case)"
            )
        answer = json.loads(line)
        if "failed" in answer:
            self.stop()
            raise RewardlabError(f"the target cannot be loaded: {answer['failed']}")
        self.about = answer
        self._await_fork()

    def _replace(self, answer: dict[str, Any]) -> None:
        """Get another fork in place of one that has died, or that is killed now; or stop, to start anew at the next call."""
        if "child" in answer:
            self.fork = answer["child"]
        elif self.fork is None or time.monotonic() >= self.until:
            self.stop()
        else:
            kill_group(self.fork)
            self._await_fork()

    def _await_fork(self) -> None:
        """Wait until a fork is ready; lines that an earlier one has left are skipped."""
        assert self.child
        due = min(time.monotonic() + LOADING, self.until + SPARE)
        while line := self.child.receive(due):
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
                if "child" in answer:
                    self.fork = answer["child"]
                    return
        self.stop()

    def _send(self, request: dict[str, Any]) -> None:
        assert self.child
        self.child.send(Call(json.dumps(request, default=str).encode(), self.seconds))

    def stop(self) -> None:
        child, self.child = self.child, None
        fork, self.fork = self.fork, None
        if child is not None:
            # the fork leads a process group of its own
            if fork is not None:
                kill_group(fork)
            child.end()


def _stat(pid: int | None) -> list[str]:
    """Linux's data of a process, from its state on; empty where it is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()
    return []


def _is_runnable(pid: int | None) -> bool:
    return _stat(pid)[:1] == ["R"]


def _cpu_seconds(pid: int | None) -> float:
    stat = _stat(pid)
    # utime and stime, in clock ticks
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK") if stat else 0.0
