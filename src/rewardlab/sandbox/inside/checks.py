"""The process that holds the tests. It never holds the program, whose functions it calls over a wire.

What it finds goes line by line into a file that the program's process never has: first the cases, then how each went, then that
the tests came to their end. So what was found until then is known whatever ends it.
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
GROWN = 256 << 20
"""Bytes with which a process is not used again."""


class Notes:
    """The file of findings; the same is noted once."""

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self.noted: set[tuple[int, bool]] = set()

    def write(self, **what: Any) -> None:
        os.write(self.descriptor, json.dumps(what).encode() + b"\n")

    def case(self, number: int, passed: bool, why: str = "") -> None:
        if (number, passed) not in self.noted:
            self.noted.add((number, passed))
            self.write(case=number, passed=passed, why=why)


class Case:
    """One time that a case is run."""

    def __init__(self, number: int, notes: Notes):
        self.number, self.notes = number, notes

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, _: Any) -> bool:
        if problem is not None and (not isinstance(problem, Exception) or _ours(problem)):
            return False
        self.notes.case(self.number, problem is None, "" if problem is None else told(problem))
        return True


def told(problem: BaseException) -> str:
    """A reason of one line."""
    said = " ".join(str(problem)[:WHY].split())
    if isinstance(problem, AssertionError):
        return f"does not hold: {said}" if said else "does not hold"
    return f"{type(problem).__name__}: {said}" if said else type(problem).__name__


def serve(control: int) -> None:
    """Test one program after the other, for as long as tests leave nothing behind that others could notice."""
    # all is said, as nothing may be asked of the kernel
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fileno=control) as lane:
        again = True
        while again:
            _, files, _, _ = socket.recv_fds(lane, 1, 3)
            if not files:
                return
            again = run(*files) and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 < GROWN
            for file in files:
                os.close(file)
            lane.send(b"." if again else b"!")


def run(source: int, wire: int, verdict: int) -> bool:
    """Test a program, and leave the findings in a file. Says whether nothing else is left of it."""
    random.seed(0)
    with open(source, "rb", closefd=False) as file:
        asked = json.loads(file.read())
    notes = Notes(verdict)
    clean = False
    link = Link(Wire(wire), asked["in_place"])
    try:
        tests = prepared(asked["tests"], asked["prompt"], asked["entry_point"])
        notes.write(cases=tests.cases)
        clean = tests.pure
        why = _run(tests, asked["entry_point"], link, notes)
        # tests may have caught what must not be caught
        notes.write(end=link.lost or why)
    except (Unusable, cases.NoTests) as problem:
        notes.write(unusable=str(problem))
    except Ended:
        notes.write(end=link.lost)
    except BaseException as problem:
        notes.write(**{"unusable" if _ours(problem) else "end": f"the tests broke off: {told(problem)}"})
    return clean


class Prepared(NamedTuple):
    """Tests, and what of their prompt they may use, as code.  pure: whether running them leaves nothing behind."""

    code: types.CodeType
    prompt: types.CodeType
    cases: list[str]
    names: list[str]
    complete: bool
    pure: bool


@functools.lru_cache(maxsize=512)
def prepared(source: str, prompt: str, entry_point: str) -> Prepared:
    """Made once for the many programs that answer one question."""
    tests, trusted = cases.cut(source, entry_point), cases.trusted(prompt, entry_point)
    clean = pure(tests.tree) and pure(trusted)
    code, before = compile(tests.tree, "<tests>", "exec"), compile(trusted, "<prompt>", "exec")
    return Prepared(code, before, tests.cases, tests.names, tests.complete, clean)


def _run(tests: Prepared, entry_point: str, link: Link, notes: Notes) -> str:
    """What speaks against the program beside its cases, if anything."""
    module = types.ModuleType("tests")
    names = vars(module)
    try:
        link.load()
    except Exception as problem:
        return f"the program does not run: {told(problem)}"
    wanted = {*tests.names, *filter(None, [entry_point])}
    exec(tests.prompt, names)
    names |= link.names(sorted(wanted - (set(names) - {entry_point})))
    if entry_point and entry_point not in names:
        return f"the program defines no {entry_point}"
    names |= {cases.CASE: lambda number: Case(number, notes), cases.CANDIDATE: names.get(entry_point)}
    exec(tests.code, names)
    return "" if notes.noted or not tests.complete else "the tests ended without coming to an assertion"


def _ours(problem: BaseException) -> bool:
    """Whether the tests are to blame and not the program: they hand over what cannot cross, or import what is not there."""
    return isinstance(problem, Unusable) or (isinstance(problem, ImportError) and not hasattr(problem, "is_of_program"))
