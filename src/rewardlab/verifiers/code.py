"""The verifier of programs: they must pass tests. All programs of a step run together in the sandbox (`sandbox/`).

answer = {"tests": "assert add(1, 2) == 3"}                                     asserts that call the program's functions
answer = {"tests": "def check(candidate): ...", "entry_point": "add"}           HumanEval's format; "prompt": how it begins
answer = {"io": [["1 2\n", "3\n"], ...]}                                        pairs of standard input and expected output

Other forms, of APPS, TACO, LiveCodeBench and CodeContests: see `code_golds`.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from rewardlab.sandbox import Limits, Outcome, ProgramRun, ProgramUnderTest, RunOutput, Sandbox
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt
from rewardlab.text.blocks import program_of

from .code_golds import GoldProgram, Unusable, gold_program
from .contract import Pair, Verdict, no_verdict, right, verifier, wrong

PARTS = ("passed", "compiled", "ran", "seconds", "memory")
CANDIDATE = "_candidate"
AT_HAND = (
    "import bisect, collections, functools, heapq, itertools, math, operator, random, re, string, sys\n"
    "from bisect import *\nfrom collections import *\nfrom functools import *\nfrom heapq import *\nfrom itertools import *\n"
    "from math import *\nfrom typing import *\n"
)
"""What the graders of LiveCodeBench and LeetCode import for a program."""
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
DECIMAL = re.compile(r"[.eE]")
SPACES = re.compile(r"\s+")
ANSWER = re.compile(r"(?:^|</think>)[ \t]*<(answer|solution)>(.*?)(?:</\1>|\Z)", re.DOTALL | re.MULTILINE)
NOT_TRIED = RunOutput(False, why="not tried, since it took too long before")
UNREADABLE = re.compile(r"the program (?:does not run|ended with exit code \d+): (?:Syntax|Indentation|Tab)Error\b")
"""How the sandbox says that Python could not read a program."""


class Wanted(NamedTuple):
    """A program to run: its source, and what it is judged by."""

    program: str
    gold: GoldProgram


@verifier(over="pairs")
def code(
    pairs: Sequence[Pair],
    *,
    seconds: PositiveFloat = 10.0,
    memory: PositiveInt = 512,
    processes: PositiveInt = 8,
    tolerance: NonNegativeFloat = 1e-6,
    partial: bool = False,
) -> list[Verdict]:
    """Whether a program passes its tests; with partial, the value is the share of tests that it passes.

    The program is the reply's last block of Python that defines what is tested, else its last block of Python, else its last
    block, else what stands in answer tags, else the whole reply; its thinking is not read.

    seconds: time limit for all tests together, or for each input; after an input that takes longer, few further ones are tried, and
    the others count as failed.  memory: limit in MiB.  processes: limit per program.
    tolerance: how far printed decimals may be from those of the gold answer, absolutely or relatively, whichever is more; whole
    numbers must be equal.
    parts: `passed`, the share of tests; `compiled`, 1 where Python could read the program; `ran`, 1 where it ran without an error,
    right or wrong; `seconds` of processor time; `memory`, the peak in MiB.
    """
    sandbox = Sandbox(Limits(seconds=seconds, memory=memory << 20, processes=processes))
    cases = [_read(pair, tolerance) for pair in pairs]
    with_tests = [case for case in cases if isinstance(case, Wanted) and not case.gold.io]
    with_io = [case for case in cases if isinstance(case, Wanted) and case.gold.io]
    # one call for all programs of the step, so that the sandbox runs them in parallel
    outcomes = iter(sandbox.run_tests([_under_test(case) for case in with_tests]))
    printed = iter(_printed(sandbox, with_io))

    def verdict(case: Wanted | Verdict) -> Verdict:
        if isinstance(case, Verdict):
            return case
        if case.gold.io:
            return _verdict_of_outputs(case, next(printed), partial, tolerance)
        return _verdict_of_tests(case, next(outcomes), partial)

    return [verdict(case) for case in cases]


def _printed(sandbox: Sandbox, cases: Sequence[Wanted]) -> list[list[RunOutput]]:
    """What each program prints on each of its inputs. One that does not end would take its time for every one of hundreds: inputs
    are tried in rounds of 1, 4, 16 ..., and a program that took too long in one is in no further round."""
    found: list[list[RunOutput]] = [[] for _ in cases]
    begin, size = 0, 1
    while waiting := [i for i, case in enumerate(cases) if begin < len(case.gold.io) and not any(map(_late, found[i]))]:
        runs = [(i, stdin) for i in waiting for stdin, _ in cases[i].gold.io[begin : begin + size]]
        # one call for all, so that the sandbox runs them in parallel
        outputs = sandbox.run_programs([ProgramRun(cases[i].program, stdin) for i, stdin in runs])
        for (i, _), output in zip(runs, outputs, strict=True):
            found[i].append(output)
        begin, size = begin + size, 4 * size
    return [[*had, *[NOT_TRIED] * (len(case.gold.io) - len(had))] for had, case in zip(found, cases, strict=True)]


def _late(run: RunOutput) -> bool:
    return run.ended is False and run.why.startswith("the program took over")


def _read(pair: Pair, tolerance: float) -> Wanted | Verdict:
    try:
        gold = gold_program(pair.answer, pair.meta, tolerance)
    except Unusable as problem:
        return no_verdict(f"the gold answer {problem}")
    program = program_of(_unwrapped(pair.response), lambda: _tested(gold))
    if not program.strip():
        return wrong("the reply contains no program", parts=dict.fromkeys(PARTS, 0.0))
    if not gold.prompt and _begins(pair.prompt, gold.entry_point):
        gold = gold._replace(prompt=pair.prompt)
    flush = textwrap.dedent(program).lstrip(" \t")
    # what continues a function is indented; a program is not, but for the space that some tokenizers begin a reply with
    if not gold.prompt or _defined(flush, gold.entry_point):
        program = flush
    return Wanted(program, gold)


def _unwrapped(reply: str) -> str:
    """The program of a reply that has it in answer tags and without a fence; else the reply. A program may print such a tag."""
    found = () if "```" in reply or "~~~" in reply else list(ANSWER.finditer(reply))
    return found[-1][2] if found else reply


def _tested(gold: GoldProgram) -> set[str]:
    """Names that the program is to define: the function to test, or whatever the tests call."""
    if gold.entry_point:
        return {re.match(r"\w*", gold.entry_point)[0], *(["Solution"] if gold.either else [])} - {""}  # type: ignore[index]
    try:
        calls = [node.func for node in ast.walk(ast.parse(gold.tests)) if isinstance(node, ast.Call)]
    except (SyntaxError, ValueError):
        return set()
    return {call.id for call in calls if isinstance(call, ast.Name)} - set(dir(builtins))


def _under_test(case: Wanted) -> ProgramUnderTest:
    gold = case.gold
    sources, function = completed(gold.prompt, case.program, gold.entry_point), gold.entry_point
    if gold.either or (function and not function.isidentifier()):
        # what is no name is bound to one; solutions of contests are written with these names at hand
        sources, function = (AT_HAND, *sources, _bound(gold)), CANDIDATE
    return ProgramUnderTest(sources, gold.tests, function, gold.prompt, gold.in_place)


def _bound(gold: GoldProgram) -> str:
    """The source that binds the function to test to one name."""
    name = gold.entry_point
    if gold.either and name.isidentifier():
        return f"{CANDIDATE} = {name} if {name!r} in globals() else Solution().{name}\n"
    return f"{CANDIDATE} = {name}\n"


def completed(prompt: str, program: str, entry_point: str) -> tuple[str, ...]:
    """The sources to run: the prompt continued by the program; or both apart, if the program defines the function itself."""
    if not prompt:
        return (program,)
    # a program that defines the function must not be appended to the unfinished function of the prompt
    return (_stub(prompt), program) if _defined(program, entry_point) else (prompt + program,)


def _defined(program: str, entry_point: str) -> bool:
    name = re.match(r"\w*", entry_point)[0]  # type: ignore[index]
    return bool(name and re.search(rf"^(?:async def|def|class) {name}\b", program, re.MULTILINE))


def _begins(prompt: str, entry_point: str) -> bool:
    """Whether a question is the beginning of a program, as HumanEval's are, whose last function is the one to test."""
    return bool(entry_point.isidentifier() and re.search(rf"^def {entry_point}\(", prompt, re.MULTILINE) and _stub(prompt))


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


def _verdict_of_outputs(case: Wanted, printed: Sequence[RunOutput], partial: bool, tolerance: float) -> Verdict:
    if failed := next((run.why for run in printed if run.ended is None), ""):
        return no_verdict(failed)
    whys = [_differs(run, stdout, tolerance) for run, (_, stdout) in zip(printed, case.gold.io, strict=True)]
    first = next((f"input {number}: {why}" for number, why in enumerate(whys, 1) if why), "")
    parts = {"passed": whys.count("") / len(whys), "ran": float(all(run.ended for run in printed))}
    parts["compiled"] = float(not any(UNREADABLE.match(run.why) for run in printed))
    return _verdict(case, not first, first, parts, printed, partial, tuple(not why for why in whys))


def _differs(run: RunOutput, wanted: str, tolerance: float) -> str:
    if not run.ended:
        return run.why
    said, gold = _lines(run.stdout), _lines(wanted)
    same = len(said) == len(gold) and all(a == b or _near(a, b, tolerance) for a, b in zip(said, gold, strict=True))
    return "" if same else "prints something else"


def _near(said: str, wanted: str, tolerance: float) -> bool:
    """Whether two lines differ in their decimals alone, and by no more than the tolerance."""
    if not any(map(str.isdigit, wanted)):
        return False
    a, b = said.split(), wanted.split()
    if len(a) != len(b) or not all(x == y or _close(x, y, tolerance) for x, y in zip(a, b, strict=True)):
        return False
    # between words spaces count, between numbers they do not
    return all(map(NUMBER.fullmatch, b)) or SPACES.findall(said) == SPACES.findall(wanted)


def _close(said: str, wanted: str, tolerance: float) -> bool:
    """Whether two numbers, of which one at least is a decimal, are as near as that; a whole number must be met exactly."""
    if not NUMBER.fullmatch(said) or not NUMBER.fullmatch(wanted) or not DECIMAL.search(said + wanted):
        return False
    if not DECIMAL.search(wanted):
        return Decimal(said) == Decimal(wanted)
    a, b = float(said), float(wanted)
    return abs(a - b) <= tolerance * max(1.0, abs(b))


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
