"""A lane: the process that starts programs, watches over them, and ends them, one at a time.

A lane is asked over a socket, and is handed open files: what a program is made of, what it reads and what it writes. It never
reads these files itself. So its memory, of which every program gets a copy, holds nothing of any program or test.
"""

from __future__ import annotations

import _sitebuiltins
import builtins
import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from . import checks, kernel, program, room

SOURCE, READY, WIRE = 3, 4, 5
"""Descriptors of a process, after its standard three: what it runs or is asked through, whom it tells that it is there."""
PROBED: dict[str, float] = {
    "seconds": 20,
    "cpu_seconds": 10,
    "memory": 1 << 29,
    "processes": 0,
    "files": 32,
    "folder": 1 << 20,
    "output": 1 << 20,
}
"""Limits of the first program, which finds out whether the sandbox holds."""
CHECKER: dict[str, float] = {
    "cpu_seconds": 1 << 30,
    "memory": 1 << 30,
    "processes": 8,
    "files": 64,
    "folder": 1 << 24,
    "output": 1 << 26,
}
PATIENCE = 20.0
"""Seconds in which a process must have been shut in."""
_HIGH = 100


class Child(NamedTuple):
    process: int
    descriptor: int
    heard: int
    folder: str


class Lane:
    """unsafe: without namespaces and without a filter of calls; processes and limits alone."""

    def __init__(self, control: socket.socket, unsafe: bool):
        self.control, self.unsafe = control, unsafe
        self.nothing = os.open("/dev/null", os.O_RDWR)
        # if memory runs out, rather this process than the one that trains
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
        self.alone = False if unsafe else room.enter()
        self.checker: Child | None = None
        self.tests = socket.socket()

    def serve(self) -> None:
        gc.collect()
        gc.freeze()
        while True:
            message, files, _, _ = socket.recv_fds(self.control, 1 << 16, 8)
            if not message:
                return
            job = json.loads(message)
            try:
                reply = self.check(job["limits"], *files) if job["kind"] == "tests" else self.play(job["limits"], *files)
            except OSError as problem:
                reply = {"problem": str(problem)}
            finally:
                for file in files:
                    os.close(file)
            self.control.send(json.dumps(reply).encode())

    def check(self, limits: dict[str, float], source: int, tests: int, verdict: int) -> dict[str, Any]:
        """A program, joined to the checker by a socket."""
        if self.checker is None:
            self.start_checker()
        ours, theirs = socket.socketpair()
        with theirs:
            with ours:
                socket.send_fds(self.tests, [b"."], [tests, ours.fileno(), verdict])
            files = [self.nothing, self.nothing, self.nothing, source, theirs.fileno()]
            found = self.run(limits, lambda: program.serve(SOURCE, WIRE), files, self.tests.fileno(), theirs.close)
        said = b"" if found["late"] or found["problem"] else self.tests.recv(1)
        if said != b".":
            found["checker"] = self.end_checker()["code"]
        return found

    def play(self, limits: dict[str, float], source: int, *streams: int) -> dict[str, Any]:
        """A program with its standard input, output and errors."""
        return self.run(limits, lambda: program.play(SOURCE), [*streams, source])

    def probe(self) -> None:
        """Refuse to serve where a program could do what it must not."""
        if self.unsafe:
            return
        heard, said = os.pipe()
        found = self.run(PROBED, room.probe, [self.nothing, said, self.nothing, self.nothing])
        os.close(said)
        with open(heard) as file:
            problem = found["problem"] or file.read() or ("a first program did not end in time" if found["late"] else "")
        if problem:
            raise room.Missing(str(problem))

    def run(
        self, limits: dict[str, float], main: Callable[[], None], files: list[int], watched: int = -1,
        started: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:  # fmt: skip
        """Run a program until it ends, or `watched` speaks, or time is up; then nothing of it is left.

        started: called once it runs, to let go of what it alone should hold.
        """
        child = self.start(room.PROGRAM, limits, main, files)
        try:
            started()
            problem = self.problem(child)
            late = not problem and not self.wait(child.descriptor if watched < 0 else watched, limits["seconds"])
        finally:
            used = self.end(child)
        return {"problem": problem, "late": late, **used}

    def start_checker(self) -> None:
        self.tests.close()
        self.tests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            files = [self.nothing, self.nothing, self.nothing, theirs.fileno()]
            self.checker = self.start(room.CHECKER, CHECKER, lambda: checks.serve(SOURCE), files)

    def end_checker(self) -> dict[str, float]:
        assert self.checker
        checker, self.checker = self.checker, None
        return self.end(checker)

    def start(self, user: int, limits: dict[str, float], main: Callable[[], None], files: list[int]) -> Child:
        heard, ready = os.pipe()
        folder = _new_folder() if self.unsafe else ""
        process = os.fork() if self.unsafe else kernel.clone(kernel.NEW_PIDS | kernel.NEW_MOUNTS)
        if process == 0:
            self.become(user, limits, main, [*files[:READY], ready, *files[READY:]], folder)
        os.close(ready)
        return Child(process, os.pidfd_open(process), heard, folder)

    def become(self, user: int, limits: dict[str, float], main: Callable[[], None], files: list[int], folder: str) -> NoReturn:
        try:
            try:
                self.shut_in(user, limits, files, folder)
            except Exception as problem:
                os.write(READY, f"{type(problem).__name__}: {problem}"[:1000].encode(errors="replace"))
                os._exit(1)
            os.write(READY, b".")
            os.close(READY)
            main()
        finally:
            os._exit(1)

    def shut_in(self, user: int, limits: dict[str, float], files: list[int], folder: str) -> None:
        _arrange(files)
        # a group of processes reaches over namespaces: this one must not be the lane's
        os.setsid()
        if self.unsafe:
            os.chdir(folder)
            room.limit(limits, others=None)
        else:
            room.confine(user, limits, self.alone)

    def problem(self, child: Child) -> str:
        """What kept a child from being shut in, if anything, after waiting until it is."""
        said = os.read(child.heard, 1 << 12) if self.wait(child.heard, PATIENCE) else b"it did not start in time"
        return "" if said == b"." else said.decode(errors="replace") or "it ended before its program began"

    def wait(self, descriptor: int, seconds: float) -> bool:
        """Whether it spoke, or ended, in time."""
        until = time.monotonic() + seconds
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(self.control, 0)
        while (left := until - time.monotonic()) > 0:
            for speaks, _ in poll.poll(1000 * left + 1):
                if speaks == descriptor:
                    return True
                # nobody is there to hear of it; children die with their parent
                os._exit(0)
        return False

    def end(self, child: Child) -> dict[str, float]:
        """Kill a process, which takes all others of its namespace with it, and say what it used."""
        with contextlib.suppress(ProcessLookupError):
            if self.unsafe:
                os.killpg(child.process, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(child.descriptor, signal.SIGKILL)
        _, status, usage = os.wait4(child.process, 0)
        os.close(child.descriptor)
        os.close(child.heard)
        if child.folder:
            _remove(child.folder)
        code = os.waitstatus_to_exitcode(status)
        return {"code": code, "cpu_seconds": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss << 10}


def _arrange(files: Sequence[int]) -> None:
    """Make files the descriptors 0, 1, 2 ... of this process, and close all others."""
    high = [fcntl.fcntl(file, fcntl.F_DUPFD, _HIGH) for file in files]
    for descriptor, file in enumerate(high):
        os.dup2(file, descriptor)
    os.closerange(len(files), 1 << 20)


def _new_folder() -> str:
    import tempfile

    return tempfile.mkdtemp()


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def main(control: int, unsafe: bool) -> None:
    sys.argv = [""]
    os.environ.clear()
    # what the module `site` would do, which also looks for packages
    builtins.exit = builtins.quit = _sitebuiltins.Quitter("exit", "")  # type: ignore[assignment]
    with socket.socket(fileno=control) as asked:
        try:
            lane = Lane(asked, unsafe)
            lane.probe()
        except (room.Missing, OSError) as problem:
            asked.send(json.dumps({"missing": str(problem)}).encode())
            return
        asked.send(b"{}")
        lane.serve()
