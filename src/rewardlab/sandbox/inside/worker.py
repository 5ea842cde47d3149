"""A worker of the sandbox: the process that starts programs, waits for them, and ends them, one at a time.

Its jobs come over a socket, with open files: a program's source, its input and its output. The worker never reads these files.
So its memory, of which every program gets a copy, holds nothing of any program or test.
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

from . import checks, isolation, kernel, program

SOURCE, READY, WIRE = 3, 4, 5
"""Descriptors of a process, after its standard three: its source or its jobs, where it reports that it is ready, its wire."""
PROBED: dict[str, float] = {
    "seconds": 20,
    "cpu_seconds": 10,
    "memory": 1 << 29,
    "processes": 0,
    "files": 32,
    "folder": 1 << 20,
    "output": 1 << 20,
}
"""Limits of the first program, which tries whether the isolation holds."""
CHECKER: dict[str, float] = {
    "cpu_seconds": 1 << 30,
    "memory": 1 << 30,
    "processes": 8,
    "files": 64,
    "folder": 1 << 24,
    "output": 1 << 26,
}
PATIENCE = 20.0
"""Seconds in which a process must be isolated."""
_HIGH = 100


class Child(NamedTuple):
    """process: its id.  descriptor: its pidfd.  status: where it reports that it is ready.  folder: its own, without isolation."""

    process: int
    descriptor: int
    status: int
    folder: str


class Worker:
    """unsafe: without namespaces and without a filter of calls; processes and limits alone.  commands: for shells."""

    def __init__(self, control: socket.socket, unsafe: bool, commands: bool = False):
        self.control, self.unsafe, self.commands = control, unsafe, commands
        self.nothing = os.open("/dev/null", os.O_RDWR)
        # if memory runs out, the kernel should kill this process before the one that trains
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
        self.own_ids = False if unsafe else isolation.enter(commands)
        self.checker: Child | None = None
        self.tests = socket.socket()

    def serve(self) -> None:
        # objects that the collector never visits stay in pages that all programs share with the worker
        gc.collect()
        gc.freeze()
        while True:
            message, files, _, _ = socket.recv_fds(self.control, 1 << 16, 8)
            if not message:
                return
            job = json.loads(message)
            try:
                work = self.run_tests if job["kind"] == "tests" else self.run_program
                reply = work(job["limits"], *files)
            except OSError as problem:
                reply = {"problem": str(problem)}
            finally:
                for file in files:
                    os.close(file)
            self.control.send(json.dumps(reply).encode())

    def run_tests(self, limits: dict[str, float], source: int, tests: int, results: int) -> dict[str, Any]:
        """Run a program that is joined to the checker by a socket."""
        if self.checker is None:
            self.start_checker()
        checker_end, program_end = socket.socketpair()
        with program_end:
            with checker_end:
                socket.send_fds(self.tests, [b"."], [tests, checker_end.fileno(), results])
            files = [self.nothing, self.nothing, self.nothing, source, program_end.fileno()]
            report = self.run(limits, lambda: program.serve(SOURCE, WIRE), files, self.tests.fileno(), program_end.close)
        usable = not (report["late"] or report["problem"]) and self.tests.recv(1) == b"."
        if not usable:
            report["checker"] = self.end_checker()["code"]
        return report

    def run_program(self, limits: dict[str, float], source: int, *streams: int) -> dict[str, Any]:
        """Run a program with its standard input, output and errors."""
        return self.run(limits, lambda: program.run(SOURCE), [*streams, source])

    def probe(self) -> None:
        """Refuse to serve where a program could do what it must not."""
        if self.unsafe:
            return
        read_end, write_end = os.pipe()
        report = self.run(PROBED, lambda: isolation.probe(self.commands), [self.nothing, write_end, self.nothing, self.nothing])
        os.close(write_end)
        with open(read_end) as file:
            problem = report["problem"] or file.read() or ("a first program did not end in time" if report["late"] else "")
        if problem:
            raise isolation.Missing(str(problem))

    def run(
        self, limits: dict[str, float], main: Callable[[], None], files: list[int], watched: int = -1,
        started: Callable[[], None] = lambda: None,
    ) -> dict[str, Any]:  # fmt: skip
        """Run a program until it ends, or `watched` can be read, or time is up; then kill it with all it started.

        started: called once it runs, to close descriptors that only the program should hold.
        """
        child = self.start(isolation.PROGRAM, limits, main, files)
        try:
            started()
            problem = self.problem(child)
            late = not problem and not self.wait(child.descriptor if watched < 0 else watched, limits["seconds"])
        finally:
            usage = self.end(child)
        return {"problem": problem, "late": late, **usage}

    def start_checker(self) -> None:
        self.tests.close()
        self.tests, checker_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with checker_end:
            files = [self.nothing, self.nothing, self.nothing, checker_end.fileno()]
            self.checker = self.start(isolation.CHECKER, CHECKER, lambda: checks.serve(SOURCE), files)

    def end_checker(self) -> dict[str, float]:
        assert self.checker
        checker, self.checker = self.checker, None
        return self.end(checker)

    def start(self, user: int, limits: dict[str, float], main: Callable[[], None], files: list[int]) -> Child:
        status_read, status_write = os.pipe()
        folder = _new_folder() if self.unsafe else ""
        process = os.fork() if self.unsafe else kernel.clone(kernel.NEW_PIDS | kernel.NEW_MOUNTS)
        if process == 0:
            self.become(user, limits, main, [*files[:READY], status_write, *files[READY:]], folder)
        os.close(status_write)
        return Child(process, os.pidfd_open(process), status_read, folder)

    def become(self, user: int, limits: dict[str, float], main: Callable[[], None], files: list[int], folder: str) -> NoReturn:
        try:
            try:
                self.isolate(user, limits, files, folder)
            except Exception as problem:
                os.write(READY, f"{type(problem).__name__}: {problem}"[:1000].encode(errors="replace"))
                os._exit(1)
            os.write(READY, b".")
            os.close(READY)
            main()
        finally:
            os._exit(1)

    def isolate(self, user: int, limits: dict[str, float], files: list[int], folder: str) -> None:
        _arrange(files)
        # a process group spans namespaces: this one must not be the worker's
        os.setsid()
        if self.unsafe:
            os.chdir(folder)
            isolation.limit(limits, others=None)
        else:
            isolation.confine(user, limits, self.own_ids, self.commands)

    def problem(self, child: Child) -> str:
        """Why a child could not be isolated, or "", after waiting until it is."""
        status = os.read(child.status, 1 << 12) if self.wait(child.status, PATIENCE) else b"it did not start in time"
        return "" if status == b"." else status.decode(errors="replace") or "it ended before its program began"

    def wait(self, descriptor: int, seconds: float) -> bool:
        """Whether a descriptor can be read, or its process has ended, in time."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(self.control, 0)
        while (remaining := deadline - time.monotonic()) > 0:
            for ready, _ in poll.poll(1000 * remaining + 1):
                if ready == descriptor:
                    return True
                # the caller is gone; children die with their parent
                os._exit(0)
        return False

    def end(self, child: Child) -> dict[str, float]:
        """Kill a process, and with it all others of its namespace. Returns its exit code and what it used."""
        with contextlib.suppress(ProcessLookupError):
            if self.unsafe:
                os.killpg(child.process, signal.SIGKILL)
            else:
                signal.pidfd_send_signal(child.descriptor, signal.SIGKILL)
        _, status, usage = os.wait4(child.process, 0)
        os.close(child.descriptor)
        os.close(child.status)
        if child.folder:
            _remove(child.folder)
        code = os.waitstatus_to_exitcode(status)
        return {"code": code, "cpu_seconds": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss << 10}


def _arrange(files: Sequence[int]) -> None:
    """Make files the descriptors 0, 1, 2 ... of this process, and close all others."""
    # first out of the way of 0, 1, 2 ..., which dup2 would otherwise overwrite before they are copied
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD, _HIGH) for file in files]
    for descriptor, file in enumerate(moved):
        os.dup2(file, descriptor)
    os.closerange(len(files), 1 << 20)


def _new_folder() -> str:
    import tempfile

    return tempfile.mkdtemp()


def _remove(folder: str) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def main(control: int, unsafe: bool, commands: bool = False) -> None:
    sys.argv = [""]
    os.environ.clear()
    # what the module `site` would do, which also looks for packages
    builtins.exit = builtins.quit = _sitebuiltins.Quitter("exit", "")  # type: ignore[assignment]
    with socket.socket(fileno=control) as jobs:
        try:
            worker = Worker(jobs, unsafe, commands)
            worker.probe()
        except (isolation.Missing, OSError) as problem:
            jobs.send(json.dumps({"missing": str(problem)}).encode())
            return
        jobs.send(b"{}")
        worker.serve()
