"""The process that runs the tests. It never holds the program, whose functions it calls over a wire.

It writes its results line by line to a file that the program's process never has: first the cases, then the result of each, then
that the tests ended. So the results up to then are known however it ends.
"""

from __future__ import annotations

import functools
import json
import os
import random
import resource
import socket
import types
from typing import Any, NamedTuple

from . import cases
from .purity import pure
from .remote import Ended, Link, Unusable
from .wire import Wire

WHY = 300
"""Characters of a reason."""
MOST_MEMORY = 256 << 20
"""Bytes; a process that has held more is not used again."""


class Results:
    """The file of results; the same result is written once."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self.written: set[tuple[int, bool]] = set()
        self.reached = False

    def write(self, **fields: Any) -> None:
        os.write(self.descriptor, json.dumps(fields).encode() + b"\n")

    def note(self, value: Any) -> Any:
        """What an assertion outside all cases is about, noting that it was reached."""
        self.reached = True
        return value

    def case(self, number: int, passed: bool, why: str = "") -> None:
        # a case in a loop would fill the file with equal lines
        if (number, passed) not in self.written:
            self.written.add((number, passed))
            self.write(case=number, passed=passed, why=why)


class Case:
    """One run of a case."""

    def __init__(self, number: int, results: Results):
        self.number, self.results = number, results

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: Any) -> bool:
        if problem is not None and (not isinstance(problem, Exception) or _tests_to_blame(problem)):
            return False
        self.results.case(self.number, problem is None, "" if problem is None else reason(problem))
        return True


def reason(problem: BaseException) -> str:
    """Why a case failed, in one line."""
    message = " ".join(str(problem)[:WHY].split())
    if isinstance(problem, AssertionError):
        return f"{cases.DOES_NOT_HOLD}: {message}" if message else cases.DOES_NOT_HOLD
    return f"{type(problem).__name__}: {message}" if message else type(problem).__name__


def serve(control: int) -> None:
    """Test one program after the other, until tests have changed something in this process that others could notice."""
    # family and kind are given, as the filter of system calls forbids to ask for them
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=control) as jobs:
        reusable = True
        while reusable:
            _, files, _, _ = socket.recv_fds(jobs, 1, 3)
            if not files:
                return
            reusable = run(*files) and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 < MOST_MEMORY
            for file in files:
                os.close(file)
            jobs.send(b"." if reusable else b"!")


def run(source: int, wire: int, file: int) -> bool:
    """Test a program, and write the results to a file. Returns whether it has changed nothing in this process."""
    random.seed(0)
    with open(source, "rb", closefd=False) as opened:
        options = json.loads(opened.read())
    results = Results(file)
    unchanged = False
    link = Link(Wire(wire), options["in_place"])
    try:
        tests = prepared(options["tests"], options["prompt"], options["entry_point"])
        results.write(cases=tests.cases)
        unchanged = tests.pure
        why = _run(tests, options["entry_point"], link, results)
        # tests may have caught the exception for a program that is gone
        results.write(end=link.lost or why)
    except (Unusable, cases.NoTests) as problem:
        results.write(unusable=str(problem))
    except Ended:
        results.write(end=link.lost)
    except BaseException as problem:
        results.write(**{"unusable" if _tests_to_blame(problem) else "end": f"the tests broke off: {reason(problem)}"})
    return unchanged


class Prepared(NamedTuple):
    """Tests, and what they may use of their prompt, as code.  pure: whether running them changes nothing in this process."""

    code: types.CodeType
    prompt: types.CodeType
    cases: list[str]
    names: list[str]
    complete: bool
    pure: bool


@functools.lru_cache(maxsize=512)
def prepared(source: str, prompt: str, entry_point: str) -> Prepared:
    """Prepared once for the many programs that answer one question."""
    tests, trusted = cases.split(source, entry_point), cases.trusted(prompt, entry_point)
    is_pure = pure(tests.tree) and pure(trusted)
    code, prompt_code = compile(tests.tree, "<tests>", "exec"), compile(trusted, "<prompt>", "exec")
    return Prepared(code, prompt_code, tests.cases, tests.names, tests.complete, is_pure)


def _run(tests: Prepared, entry_point: str, link: Link, results: Results) -> str:
    """Why the program fails, beside its cases, or ""."""
    # tests may call themselves where they are the program that runs
    module = types.ModuleType("__main__")
    names = vars(module)
    try:
        link.load()
    except Exception as problem:
        return f"the program does not run: {reason(problem)}"
    needed = {*tests.names, *filter(None, [entry_point])}
    exec(tests.prompt, names)
    names |= link.names(sorted(needed - (set(names) - {entry_point})))
    if entry_point and entry_point not in names:
        return f"the program defines no {entry_point}"
    names |= {
        cases.CASE: lambda number: Case(number, results),
        cases.CANDIDATE: names.get(entry_point),
        cases.REACHED: results.note,
    }
    exec(tests.code, names)
    tested = results.written or results.reached or not tests.complete
    return "" if tested else "the tests ended before they reached an assertion"


def _tests_to_blame(problem: BaseException) -> bool:
    """Whether the tests are to blame and not the program: they pass an object that cannot be sent, or import a missing module."""
    return isinstance(problem, Unusable) or (isinstance(problem, ImportError) and not hasattr(problem, "is_of_program"))
