"""Which asserts programs pass, each program with asserts of its own."""

from __future__ import annotations

from collections.abc import Sequence

from .sandbox import Limits, ProgramUnderTest, Sandbox

SECOND = Limits(seconds=5.0, cpu_seconds=1.0)
"""A second of processor time: on a busy machine, a second by the clock would end programs that are right."""


def passed(programs: Sequence[str], tests: Sequence[Sequence[str]], limits: Limits = SECOND) -> list[tuple[bool, ...] | None]:
    """Of each program, for each of its asserts whether it holds; None where the sandbox failed, or there is no assert.

    tests: of each program, texts that call its functions by their names; one with several asserts counts so many times.
    """
    wanted = [ProgramUnderTest(program, "\n".join(own) + "\n") for program, own in zip(programs, tests, strict=True)]
    outcomes = Sandbox(limits).run_tests(wanted)
    return [None if outcome.passed is None else tuple(case.passed for case in outcome.cases) for outcome in outcomes]
