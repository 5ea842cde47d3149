"""The verifier of programs: they must pass tests. All programs of a step run together in the sandbox (`sandbox/`).

answer = {"tests": "assert add(1, 2) == 3"}                                     asserts that call the program's functions
answer = {"tests": "def check(candidate): ...", "entry_point": "add"}           HumanEval's format; "prompt": how it begins
answer = {"io": [["1 2\n", "3\n"], ...]}                                        pairs of standard input and expected output
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rewardlab.sandbox import Limits, Outcome, ProgramRun, ProgramUnderTest, RunOutput, Sandbox
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.text.blocks import program_span

from .contract import Pair, Verdict, no_verdict, right, verifier, wrong

PARTS = ("passed", "compiled", "ran", "seconds", "memory")
UNREADABLE = re.compile(r"the program (?:does not run|ended with exit code \d+): (?:Syntax|Indentation|Tab)Error\b")
"""How the sandbox says that Python could not read a program."""


class Wanted(NamedTuple):
    """A program to run: its source, the gold answer, and its pairs of input and expected output if it has any."""

    program: str
    answer: Mapping[str, Any]
    io: Sequence[tuple[str, str]]


@verifier(over="pairs")
def code(
    pairs: Sequence[Pair],
    *,
    seconds: PositiveFloat = 10.0,
    memory: PositiveInt = 512,
    processes: PositiveInt = 8,
    partial: bool = False,
) -> list[Verdict]:
    """Whether a program passes its tests; with partial, the value is the share of tests that it passes.

    The program is the reply's last block of Python, else its last block, else the whole reply.

    seconds: time limit for all tests together, or for each input.  memory: limit in MiB.  processes: limit per program.
    parts: `passed`, the share of tests; `compiled`, 1 where Python could read the program; `ran`, 1 where it ran without an error,
    right or wrong; `seconds` of processor time; `memory`, the peak in MiB.
    """
    sandbox = Sandbox(Limits(seconds=seconds, memory=memory << 20, processes=processes))
    cases = [_read(pair) for pair in pairs]
    with_tests = [case for case in cases if isinstance(case, Wanted) and not case.io]
    with_io = [case for case in cases if isinstance(case, Wanted) and case.io]
    # one call for all programs of the step, so that the sandbox runs them in parallel
    outcomes = iter(sandbox.run_tests([_under_test(case) for case in with_tests]))
    printed = iter(sandbox.run_programs([ProgramRun(case.program, stdin) for case in with_io for stdin, _ in case.io]))

    def verdict(case: Wanted | Verdict) -> Verdict:
        if isinstance(case, Verdict):
            return case
        if case.io:
            return _verdict_of_outputs(case, [next(printed) for _ in case.io], partial)
        return _verdict_of_tests(case, next(outcomes), partial)

    return [verdict(case) for case in cases]


def program_of(reply: str) -> str:
    """The last Python block of a reply, else its last block, else the whole reply. An unclosed block ends with the reply."""
    span = program_span(reply)
    return "\n".join(reply[slice(*span)].splitlines()) + "\n" if span else reply


def _read(pair: Pair) -> Wanted | Verdict:
    answer = pair.answer
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except ValueError:
            # a text that is not JSON is the tests themselves
            answer = {"tests": answer}
    problem = _unusable(answer)
    if problem:
        return no_verdict(f"the gold answer {problem}")
    program = program_of(pair.response)
    if not program.strip():
        return wrong("the reply contains no program", parts=dict.fromkeys(PARTS, 0.0))
    return Wanted(program, answer, [(stdin, stdout) for stdin, stdout in answer.get("io") or ()])


def _unusable(answer: Any) -> str:
    """Why a gold answer cannot be used; "" if it can."""
    if not isinstance(answer, Mapping) or not (answer.get("tests") or answer.get("io")):
        return "has neither `tests` nor `io`"
    if not all(isinstance(answer.get(name) or "", str) for name in ("tests", "entry_point", "prompt")):
        return "must have text as `tests`, `entry_point` and `prompt`"
    pairs = answer.get("io") or ()
    if isinstance(pairs, str) or not all(len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in pairs):
        return "must have pairs of texts, input and output, as `io`"
    return ""


def _under_test(case: Wanted) -> ProgramUnderTest:
    prompt, entry_point = case.answer.get("prompt") or "", case.answer.get("entry_point") or ""
    return ProgramUnderTest(
        completed(prompt, case.program, entry_point), case.answer["tests"], entry_point, prompt, bool(case.answer.get("in_place"))
    )


def completed(prompt: str, program: str, entry_point: str) -> tuple[str, ...]:
    """The sources to run: the prompt continued by the program; or both apart, if the program defines the function itself."""
    if not prompt:
        return (program,)
    # a program that defines the function must not be appended to the unfinished function of the prompt
    redefined = entry_point and re.search(rf"^(?:async )?def {re.escape(entry_point)}\b", program, re.MULTILINE)
    return (_stub(prompt), program) if redefined else (prompt + program,)


def _stub(prompt: str) -> str:
    """The prompt as a source that runs by itself: if its function has no body yet, it gets one. "" if neither parses."""
    for text in (prompt, f"{prompt.rstrip()}\n    pass\n"):
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        return text
    return ""


def _verdict_of_tests(case: Wanted, outcome: Outcome, partial: bool) -> Verdict:
    if outcome.passed is None:
        return no_verdict(outcome.why)
    tests = tuple(test.passed for test in outcome.cases)
    parts = {"passed": outcome.share if outcome.cases else float(outcome.passed), "ran": float(outcome.ran)}
    parts["compiled"] = float(not UNREADABLE.match(outcome.why))
    return _verdict(case, outcome.passed, outcome.why, parts, [outcome], partial, tests)


def _verdict_of_outputs(case: Wanted, printed: Sequence[RunOutput], partial: bool) -> Verdict:
    if failed := next((run.why for run in printed if run.ended is None), ""):
        return no_verdict(failed)
    whys = [_differs(run, stdout) for run, (_, stdout) in zip(printed, case.io, strict=True)]
    first = next((f"input {number}: {why}" for number, why in enumerate(whys, 1) if why), "")
    parts = {"passed": whys.count("") / len(whys), "ran": float(all(run.ended for run in printed))}
    parts["compiled"] = float(not any(UNREADABLE.match(run.why) for run in printed))
    return _verdict(case, not first, first, parts, printed, partial, tuple(not why for why in whys))


def _differs(run: RunOutput, wanted: str) -> str:
    if not run.ended:
        return run.why
    return "" if _lines(run.stdout) == _lines(wanted) else "prints something else"


def _lines(text: str) -> list[str]:
    """The lines of an output, ignoring trailing spaces and empty lines at the end."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def _verdict(
    case: Wanted, passed: bool, why: str, parts: dict[str, float], runs: Sequence[Outcome | RunOutput], partial: bool,
    tests: tuple[bool, ...],
) -> Verdict:  # fmt: skip
    parts |= {"seconds": sum(run.seconds for run in runs), "memory": max(run.memory for run in runs) / (1 << 20)}
    # None: the value is 1 or 0, by the verdict
    value = parts["passed"] if partial else None
    if passed:
        return right(case.program, "passes all tests", value=value, parts=parts, tests=tests)
    return wrong(why or "fails", case.program, value=value, parts=parts, tests=tests)
