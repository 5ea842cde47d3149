"""Model-written programs in isolation, with tests that they cannot cheat."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError
from rewardlab.processes.child import Call
from rewardlab.processes.supervisor import Lost

from .inside.cases import DOES_NOT_HOLD
from .workers import SandboxWorkers, workers

Report = dict[str, Any]
"""A worker's report on a program that has ended."""
MIB = 1 << 20
RESULTS = 1 << 26
"""Bytes of test results that are read."""
PATIENCE = 30.0
"""Seconds in which a worker must answer after its program's time is up."""

LOST = "the sandbox came down twice under this program"


@dataclass(frozen=True)
class Limits:
    """The resources of a program.

    seconds: by the clock, from its start until its last test.  cpu_seconds: of each process; default: `seconds`, rounded up.
    memory: bytes of address space of each process, Python's own 40 MiB included.  processes: processes and threads at once.
    files: open descriptors.  folder: bytes of its working folder.  output: bytes of what it prints.
    """

    seconds: float = 10.0
    cpu_seconds: float | None = None
    memory: int = 512 * MIB
    processes: int = 8
    files: int = 64
    folder: int = 16 * MIB
    output: int = 4 * MIB

    def __post_init__(self) -> None:
        lowest = {"seconds": 0.01, "memory": 64 * MIB, "processes": 1, "files": 16, "folder": 4096, "output": 0}
        for name, amount in lowest.items():
            if getattr(self, name) < amount:
                raise RewardlabError(f"a program's limit of {name} is {getattr(self, name)}; it must be at least {amount}")

    def plain(self) -> dict[str, float]:
        cpu = self.seconds if self.cpu_seconds is None else self.cpu_seconds
        # rounded up, since the kernel counts whole seconds
        return asdict(self) | {"cpu_seconds": max(1, -int(-cpu // 1))}


class ProgramUnderTest(NamedTuple):
    """A program and its tests.

    program: source, or several that run one after the other in one module.  tests: source with asserts.  entry_point: the
    function that `check(candidate)` of the tests gets.  prompt: source that the program was to complete; the tests use what it
    defines in full as it is there.  in_place: changes of arguments count even where a function returns something.
    """

    program: str | Sequence[str]
    tests: str
    entry_point: str = ""
    prompt: str = ""
    in_place: bool = False


class ProgramRun(NamedTuple):
    """A program and its standard input."""

    program: str | Sequence[str]
    stdin: str = ""


class Case(NamedTuple):
    """An assertion of tests, and how it ended."""

    source: str
    passed: bool
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """The results of tests.

    passed: None where the tests or the sandbox failed and the program is not to blame.  cases: one for each assertion; one that was
    never reached counts as passed if the tests reached their end.  why: of the first failure.  ran: whether nothing but assertions
    failed: the program loaded, raised nothing and ended in time.  seconds: of processor time, by the program's process.  memory:
    the most bytes that it held, Python's own 10 MiB included.
    """

    passed: bool | None
    cases: tuple[Case, ...] = ()
    why: str = ""
    ran: bool = False
    seconds: float = 0.0
    memory: int = 0

    @property
    def share(self) -> float:
        """The share of cases that passed."""
        return sum(case.passed for case in self.cases) / len(self.cases) if self.cases else float(bool(self.passed))


@dataclass(frozen=True)
class RunOutput:
    """The output of a program that ran on its own. ended: None where the sandbox failed; True if its exit code was 0."""

    ended: bool | None
    stdout: str = ""
    stderr: str = ""
    why: str = ""
    seconds: float = 0.0
    memory: int = 0


class Sandbox:
    """Many programs at once, one for each core. From any thread; no program can make it raise or wait."""

    def __init__(self, limits: Limits | None = None, workers: SandboxWorkers | None = None, commands: bool = False):
        """workers: by default those of this process.  commands: those whose programs may start others (`shell.py`)."""
        self.limits, self.workers, self.commands = limits or Limits(), workers, commands

    def run_tests(self, programs: Sequence[ProgramUnderTest]) -> list[Outcome]:
        return self._map("tests", [_test_files(program) for program in programs], self._outcome)

    def run_programs(self, programs: Sequence[ProgramRun]) -> list[RunOutput]:
        return self._map("program", [_program_files(program) for program in programs], self._output)

    def _map(
        self, kind: str, contents: list[list[bytes]], read_result: Callable[[Report | Lost, tuple[int, ...]], Any]
    ) -> list[Any]:
        limits = self.limits.plain()
        message = json.dumps({"kind": kind, "limits": limits}).encode()
        results: list[Any] = [None] * len(contents)
        open_files: dict[int, tuple[int, ...]] = {}

        def calls() -> Iterator[Call]:
            for number, content in enumerate(contents):
                open_files[number] = tuple(_file(part) for part in content)
                yield Call(message, limits["seconds"] + PATIENCE, open_files[number])

        try:
            for number, answer in (self.workers or workers(self.commands)).map(calls(), len(contents)) if contents else ():
                results[number] = read_result(answer if isinstance(answer, Lost) else json.loads(answer), open_files[number])
                for file in open_files.pop(number):
                    os.close(file)
        finally:
            for files in open_files.values():
                for file in files:
                    os.close(file)
        return results

    def _outcome(self, report: Report | Lost, files: tuple[int, ...]) -> Outcome:
        if isinstance(report, Lost):
            return Outcome(False, why=LOST)
        if report["problem"]:
            return Outcome(None, why=f"the sandbox failed: {report['problem']}")
        # [:-1]: what follows the last line break is empty, or a line whose writer was killed
        records = [json.loads(line) for line in _text(files[2], RESULTS).split("\n")[:-1]]
        tests = {name: value for record in records if "case" not in record for name, value in record.items()}
        usage = {"seconds": report["cpu_seconds"], "memory": report["memory"]}
        if "unusable" in tests:
            return Outcome(None, why=tests["unusable"], **usage)
        end = tests.get("end")
        if report["late"]:
            end = f"program and tests took over {self.limits.seconds:g} s"
        elif end is None:
            end = f"the tests broke off: their process ended with exit code {report.get('checker')}"
        elif end.startswith("the program ended") and (death := self._death(report)):
            end = f"the program {death}"
        cases = _cases(tests.get("cases", []), records, end)
        first_failure = next((f"{case.source}: {case.why}" for case in cases if not case.passed), "")
        ran = not end and all(case.passed or case.why.startswith(DOES_NOT_HOLD) for case in cases)
        return Outcome(not end and not first_failure, cases, end or first_failure, ran, **usage)

    def _output(self, report: Report | Lost, files: tuple[int, ...]) -> RunOutput:
        if isinstance(report, Lost):
            return RunOutput(False, why=LOST)
        if report["problem"]:
            return RunOutput(None, why=f"the sandbox failed: {report['problem']}")
        stdout, stderr = (_text(file, self.limits.output) for file in files[2:4])
        if os.fstat(files[2]).st_size > self.limits.output:
            why = f"the program printed more than {self.limits.output} bytes"
        elif death := self._death(report):
            why = f"the program {death}"
        else:
            code = int(report["code"])
            why = f"the program ended with exit code {code}: {stderr.strip().rpartition(chr(10))[2]}" if code else ""
        return RunOutput(not why, stdout, stderr, why, report["cpu_seconds"], report["memory"])

    def _death(self, report: Report) -> str:
        """What ended a program from outside, if anything did."""
        code, cpu_limit = int(report["code"]), self.limits.plain()["cpu_seconds"]
        if report["late"]:
            return f"took over {self.limits.seconds:g} s"
        if code == -signal.SIGKILL:
            # sent by the worker at the end, or by the kernel at the limit
            # half a second of tolerance: the kernel's and the worker's counts differ slightly
            return f"took over {cpu_limit:g} s of processor time" if report["cpu_seconds"] >= cpu_limit - 0.5 else ""
        return f"died of signal {-code}" if code < 0 else ""


def _cases(sources: Sequence[str], records: Sequence[dict[str, Any]], end: str) -> tuple[Case, ...]:
    failed = {record["case"]: record["why"] for record in records if record.get("passed") is False}
    passed = {record["case"] for record in records if record.get("passed") is True}
    why = {number: failed.get(number, "" if number in passed else end) for number in range(len(sources))}
    return tuple(Case(source, not why[number], why[number]) for number, source in enumerate(sources))


def _test_files(test: ProgramUnderTest) -> list[bytes]:
    """The program, the tests, and an empty file for the results."""
    options = {name: getattr(test, name) for name in ("tests", "entry_point", "prompt", "in_place")}
    return [_sources(test.program), json.dumps(options).encode(), b""]


def _program_files(run: ProgramRun) -> list[bytes]:
    """The program, its input, and empty files for its output and errors."""
    return [_sources(run.program), run.stdin.encode(errors="replace"), b"", b""]


def _sources(program: str | Sequence[str]) -> bytes:
    return json.dumps([program] if isinstance(program, str) else list(program)).encode()


def _file(content: bytes) -> int:
    """An open file in memory."""
    descriptor = os.memfd_create("rewardlab", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    # the program reads from the start; parent and child share one file position
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _text(file: int, most: int) -> str:
    return os.pread(file, most, 0).decode(errors="replace")
