"""The verifier of programs of the small language (`tasks.programs`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardlab.tasks.programs import Program, ProgramError, parse, read_value, run
from rewardlab.verifiers.contract import Verdict, no_verdict, right, verifier, wrong

LONGEST = 2000
"""Characters of a reply that is read."""


@verifier
def list_program(response: str, answer: Any, *, partial: bool = False) -> Verdict:
    """Whether a program of the small language passes its tests: answer = {"io": [["[1, 2]", "3"], ...]}.

    partial: the value is the share of tests that it passes.  parts: `passed`, that share; `compiled`, 1 where the reply is a
    program; `ran`, 1 where it has a value on every input, right or wrong; `operations`, what it took on all inputs together.
    """
    try:
        pairs = [(read_value(x), read_value(y)) for x, y in answer["io"]] if isinstance(answer, Mapping) else []
    except (KeyError, TypeError, ValueError, ProgramError):
        pairs = []
    if not pairs:
        return no_verdict('the gold answer is not {"io": [["[1, 2]", "3"], ...]}')
    try:
        program = parse(response.strip()[:LONGEST])
    except ProgramError as e:
        unread = dict.fromkeys(("passed", "compiled", "ran", "operations"), 0.0)
        return wrong(str(e), parts=unread, tests=(False,) * len(pairs))
    ran = [_run(program, x) for x, _ in pairs]
    tests = tuple(not isinstance(got, str) and got[0] == wanted for got, (_, wanted) in zip(ran, pairs, strict=True))
    done = [got for got in ran if not isinstance(got, str)]
    passed = sum(tests) / len(tests)
    parts = {"passed": passed, "compiled": 1.0, "ran": float(len(done) == len(ran))}
    parts["operations"] = float(sum(cost for _, cost in done))
    said: dict[str, Any] = {"value": passed if partial else None, "parts": parts, "tests": tests}
    if all(tests):
        return right(response.strip(), "passes all tests", **said)
    return wrong(next((got for got in ran if isinstance(got, str)), f"passes {sum(tests)} of {len(tests)} tests"), **said)


def _run(program: Program, value: Any) -> tuple[Any, int] | str:
    """The value and the operations it took, or why there is none."""
    try:
        done = run(program, value)
    except ProgramError as e:
        return str(e)
    return done.value, done.operations
