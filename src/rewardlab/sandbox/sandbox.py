"""Programs written by a model, run where they can do no harm, and tests of them that they cannot cheat."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError

from .lanes import Job, Lanes, Lost, lanes

MIB = 1 << 20
NOTES = 1 << 26
"""Bytes of findings that are read."""


@dataclass(frozen=True)
class Limits:
    """What a program may use.

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
        least = {"seconds": 0.01, "memory": 64 * MIB, "processes": 1, "files": 16, "folder": 4096, "output": 0}
        for name, amount in least.items():
            if getattr(self, name) < amount:
                raise RewardlabError(f"a program's limit of {name} is {getattr(self, name)}; it must be at least {amount}")

    def plain(self) -> dict[str, float]:
        cpu = self.seconds if self.cpu_seconds is None else self.cpu_seconds
        return asdict(self) | {"cpu_seconds": max(1, -int(-cpu // 1))}


class Checked(NamedTuple):
    """A program and its tests.

    program: source, or several that run one after the other in one module.  tests: source with asserts.  entry_point: the
    function that `check(candidate)` of the tests gets.  prompt: source that the program was to complete; what it defines in full,
    the tests use as it stands there.  in_place: what becomes of arguments counts even where a function returns something.
    """

    program: str | Sequence[str]
    tests: str
    entry_point: str = ""
    prompt: str = ""
    in_place: bool = False


class Played(NamedTuple):
    """A program and what it reads."""

    program: str | Sequence[str]
    stdin: str = ""


class Case(NamedTuple):
    source: str
    passed: bool
    why: str = ""


@dataclass(frozen=True)
class Outcome:
    """How tests went.

    passed: None where the tests or the sandbox failed and the program is not to blame.  cases: one for each assertion; one that was
    never come to counts as passed if the tests came to their end.  why: of the first failure.  seconds: of processor time, by the
    program's process.  memory: the most bytes that it held, Python's own 10 MiB included.
    """

    passed: bool | None
    cases: tuple[Case, ...] = ()
    why: str = ""
    seconds: float = 0.0
    memory: int = 0

    @property
    def share(self) -> float:
        """Of cases that passed."""
        return sum(case.passed for case in self.cases) / len(self.cases) if self.cases else float(bool(self.passed))


@dataclass(frozen=True)
class Printed:
    """What became of a program that ran on its own. ended: None where the sandbox failed; True if its exit code was 0."""

    ended: bool | None
    stdout: str = ""
    stderr: str = ""
    why: str = ""
    seconds: float = 0.0
    memory: int = 0


class Sandbox:
    """Many programs at once, one for each core. From any thread; a response can make it neither raise nor wait."""

    def __init__(self, limits: Limits | None = None, lanes: Lanes | None = None):
        """lanes: by default those of this process."""
        self.limits, self.lanes = limits or Limits(), lanes

    def run_tests(self, wanted: Sequence[Checked]) -> list[Outcome]:
        return self._map("tests", [_test_files(one) for one in wanted], self._outcome)

    def run_programs(self, wanted: Sequence[Played]) -> list[Printed]:
        return self._map("program", [_program_files(one) for one in wanted], self._printed)

    def _map(self, kind: str, contents: list[list[bytes]], read: Any) -> list[Any]:
        limits = self.limits.plain()
        results: list[Any] = [None] * len(contents)
        opened: dict[int, tuple[int, ...]] = {}

        def jobs() -> Iterator[Job]:
            for number, content in enumerate(contents):
                opened[number] = tuple(_file(part) for part in content)
                yield Job(kind, limits, opened[number])

        try:
            for number, said in (self.lanes or lanes()).map(jobs()) if contents else ():
                results[number] = read(said, opened[number])
                for file in opened.pop(number):
                    os.close(file)
        finally:
            for files in opened.values():
                for file in files:
                    os.close(file)
        return results

    def _outcome(self, said: dict[str, Any] | Lost, files: tuple[int, ...]) -> Outcome:
        if isinstance(said, Lost):
            return Outcome(False, why=said.why)
        if said["problem"]:
            return Outcome(None, why=f"the sandbox failed: {said['problem']}")
        notes = [json.loads(line) for line in _text(files[2], NOTES).split("\n")[:-1]]
        found = {name: value for note in notes if "case" not in note for name, value in note.items()}
        used = {"seconds": said["cpu_seconds"], "memory": said["memory"]}
        if "unusable" in found:
            return Outcome(None, why=found["unusable"], **used)
        end = found.get("end")
        if said["late"]:
            end = f"program and tests took over {self.limits.seconds:g} s"
        elif end is None:
            end = f"the tests broke off: their process ended with exit code {said.get('checker')}"
        elif end.startswith("the program ended") and (death := self._death(said)):
            end = f"the program {death}"
        cases = _cases(found.get("cases", []), notes, end)
        first = next((f"{case.source}: {case.why}" for case in cases if not case.passed), "")
        return Outcome(not end and not first, cases, end or first, **used)

    def _printed(self, said: dict[str, Any] | Lost, files: tuple[int, ...]) -> Printed:
        if isinstance(said, Lost):
            return Printed(False, why=said.why)
        if said["problem"]:
            return Printed(None, why=f"the sandbox failed: {said['problem']}")
        stdout, stderr = (_text(file, self.limits.output) for file in files[2:4])
        if os.fstat(files[2]).st_size > self.limits.output:
            why = f"the program printed more than {self.limits.output} bytes"
        elif death := self._death(said):
            why = f"the program {death}"
        else:
            code = int(said["code"])
            why = f"the program ended with exit code {code}: {stderr.strip().rpartition(chr(10))[2]}" if code else ""
        return Printed(not why, stdout, stderr, why, said["cpu_seconds"], said["memory"])

    def _death(self, said: dict[str, Any]) -> str:
        """What ended a program from outside, if anything did."""
        code, most = int(said["code"]), self.limits.plain()["cpu_seconds"]
        if said["late"]:
            return f"took over {self.limits.seconds:g} s"
        if code == -signal.SIGKILL:
            # the lane's own, when all is over, or the kernel's at the limit
            return f"took over {most:g} s of processor time" if said["cpu_seconds"] >= most - 0.5 else ""
        return f"died of signal {-code}" if code < 0 else ""


def _cases(sources: Sequence[str], notes: Sequence[dict[str, Any]], end: str) -> tuple[Case, ...]:
    failed = {note["case"]: note["why"] for note in notes if note.get("passed") is False}
    passed = {note["case"] for note in notes if note.get("passed") is True}
    why = {number: failed.get(number, "" if number in passed else end) for number in range(len(sources))}
    return tuple(Case(source, not why[number], why[number]) for number, source in enumerate(sources))


def _test_files(wanted: Checked) -> list[bytes]:
    """The program, the tests, and a place for the findings."""
    asked = {name: getattr(wanted, name) for name in ("tests", "entry_point", "prompt", "in_place")}
    return [_sources(wanted.program), json.dumps(asked).encode(), b""]


def _program_files(wanted: Played) -> list[bytes]:
    """The program, what it reads, and places for what it prints."""
    return [_sources(wanted.program), wanted.stdin.encode(errors="replace"), b"", b""]


def _sources(program: str | Sequence[str]) -> bytes:
    return json.dumps([program] if isinstance(program, str) else list(program)).encode()


def _file(content: bytes) -> int:
    """An open file in memory."""
    descriptor = os.memfd_create("rewardlab", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _text(file: int, most: int) -> str:
    return os.pread(file, most, 0).decode(errors="replace")
