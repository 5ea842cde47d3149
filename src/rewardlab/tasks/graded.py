"""Programs of known worth: mutants of right ones, with the share of tests that each passes, evenly spread; and tests to tell them.

A problem has the columns of HumanEval (task_id, prompt, canonical_solution, entry_point, test). Its mutants have one or two
operators or constants changed (`data/mutants.py`). Tests are the asserts of the problem, and calls on inputs that are varied by
their types from those of the asserts, with what a program returns as the expected value (Liu et al. 2023, arXiv:2305.01210,
EvalPlus). All programs run in the sandbox, and there alone.
"""

from __future__ import annotations

import ast
import copy
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

from rewardlab.core import seed_of
from rewardlab.data.files import Row
from rewardlab.data.mutants import syntax_mutants
from rewardlab.sandbox import Outcome, ProgramRun, ProgramUnderTest, Sandbox
from rewardlab.sandbox.asserts import SECOND
from rewardlab.sandbox.inside.cases import DOES_NOT_HOLD

SOLUTIONS = 5
MARK = "\u2063returned "
"""What begins a line that the probe prints, and not the program."""


def spread(scores: Sequence[float], n: int) -> list[int]:
    """Places of n scores, given from high to low, that span their range evenly, as the released code of HE-R chooses them.

    The lowest of those between 0 and 0.1, else the lowest, is chosen first; then, for each of n - 1 targets between 1 and that one,
    the score that is nearest of those left.
    """
    if n >= len(scores):
        return list(range(len(scores)))
    lowest = next((i for i in reversed(range(len(scores))) if 0.0 < scores[i] < 0.1), len(scores) - 1)
    chosen = {lowest}
    for k in range(1, n):
        target = 1.0 - k / n * (1.0 - scores[lowest])
        chosen.add(min((i for i in range(len(scores)) if i not in chosen), key=lambda i: abs(scores[i] - target)))
    return sorted(chosen)


def graded_rows(
    problems: Sequence[Mapping[str, Any]], seed: int = 0, mutants: int = 24, plus: int = 24, tests: int = 32
) -> list[Row]:
    """Rows in the format of HE-R+: `all_solutions`, the right one first, of different shares of tests passed.

    plus: generated tests beside the asserts of a problem, by which the shares are measured.  unit_tests: so many other tests, with
    what the right solution returns.  misread_tests: the same inputs with what one of the mutants returns, as a writer would expect
    who has misread the problem; the inputs on which both return the same are among them. A problem of which fewer than three
    solutions differ, or whose inputs cannot be varied, is left out.
    """
    rngs = [random.Random(seed_of("graded", seed, p["task_id"])) for p in problems]
    made = [_mutants(p, mutants, rng) for p, rng in zip(problems, rngs, strict=True)]
    inputs = [_inputs(p, plus + tests, rng) for p, rng in zip(problems, rngs, strict=True)]
    known = _returned([_whole(p) for p in problems], inputs)
    rows = []
    for p, own, table, rng in zip(problems, made, known, rngs, strict=True):
        calls = [call for call, value in table.items() if value is not None]
        if len(calls) < 3 or len(own) < 2:
            continue
        held, given = calls[: len(calls) // 2][:plus], calls[len(calls) // 2 :][:tests]
        if row := _row(p, own, [f"assert {c} == {table[c]}" for c in held]):
            believed = rng.choice(row["all_solutions"][1:])["solution"]["canonical_solution"]
            (theirs,) = _returned([believed], [given])
            row["unit_tests"] = [f"assert {c} == {table[c]}" for c in given]
            row["misread_tests"] = [f"assert {c} == {table[c] if theirs[c] is None else theirs[c]}" for c in given]
            rows.append(row)
    return rows


def _whole(problem: Mapping[str, Any]) -> str:
    return str(problem["prompt"]) + str(problem["canonical_solution"])


def _mutants(problem: Mapping[str, Any], most: int, rng: random.Random) -> list[str]:
    """Programs with one change, at most half of them, and with two."""
    whole = _whole(problem)
    one = _changed(whole, problem)
    two = [again for first in rng.sample(one, min(len(one), 4)) for again in _changed(first, problem) if again != whole]
    chosen = rng.sample(one, min(len(one), most // 2))
    rest = sorted(set(two) - set(chosen))
    return chosen + rng.sample(rest, min(len(rest), most - len(chosen)))


def _changed(program: str, problem: Mapping[str, Any]) -> list[str]:
    """Its mutants in which what the problem gives is as it was."""
    return [text for text, _ in syntax_mutants(program) if text.startswith(problem["prompt"])]


def _row(problem: Mapping[str, Any], mutants: Sequence[str], plus: Sequence[str]) -> Row | None:
    programs = [_whole(problem), *mutants]
    base = [ProgramUnderTest(p, problem["test"], problem["entry_point"], problem["prompt"]) for p in programs]
    found = Sandbox(SECOND).run_tests([*base, *(ProgramUnderTest(p, "\n".join(plus) + "\n") for p in programs)])
    best: dict[float, str] = {}
    for program, *outcomes in zip(programs, found[: len(programs)], found[len(programs) :], strict=True):
        cases = [case for outcome in outcomes for case in outcome.cases]
        if _logical(outcomes):
            # of equal scores the first stands: the released code keeps the fastest
            best.setdefault(round(sum(case.passed for case in cases) / len(cases), 2), program)
    scores = sorted((s for s in best if s < 1.0), reverse=True)
    if len(scores) < 2 or best.get(1.0) != programs[0]:
        return None
    kept = [1.0, *(scores[i] for i in spread(scores, SOLUTIONS - 1))]
    solutions = [
        {"rank": k, "average_test_score": s, "solution": {"prompt": problem["prompt"], "canonical_solution": best[s]}}
        for k, s in enumerate(kept, 1)
    ]  # fmt: skip
    return {name: problem[name] for name in ("task_id", "prompt", "entry_point")} | {"all_solutions": solutions}


def _logical(outcomes: Sequence[Outcome]) -> bool:
    """Whether a program fails by what it returns somewhere, or passes: one that breaks off in every test is no candidate."""
    cases = [case for outcome in outcomes for case in outcome.cases]
    known = all(outcome.passed is not None for outcome in outcomes)
    return known and any(case.passed or case.why.startswith(DOES_NOT_HOLD) for case in cases)


# ---- inputs, and what programs return ------------------------------------------------------------------------------------


def _inputs(problem: Mapping[str, Any], n: int, rng: random.Random) -> list[str]:
    """Calls of the function on n varied inputs, none of them in the asserts."""
    seeds = [args for node in ast.walk(ast.parse(problem["test"])) if (args := _arguments(node))]
    if not seeds:
        return []
    seen, found = {repr(args) for args in seeds}, []
    for _ in range(10 * n):
        args = copy.deepcopy(rng.choice(seeds))
        for _ in range(rng.randint(1, 2)):
            place = rng.randrange(len(args))
            args[place] = varied(args[place], rng)
        if repr(args) not in seen:
            seen.add(repr(args))
            found.append(f"{problem['entry_point']}({', '.join(map(repr, args))})")
    return found[:n]


def _arguments(node: ast.AST) -> list[Any]:
    """The arguments of a call of `candidate`, where all are literals."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "candidate") or node.keywords:
        return []
    try:
        return [ast.literal_eval(argument) for argument in node.args]
    except (ValueError, TypeError, SyntaxError):
        return []


def varied(value: Any, rng: random.Random) -> Any:
    """A value of the same type that is close by; one of another type than those of JSON, and tuples, stays as it is."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1 if value > 0 else value, 2 * value, value + rng.randint(2, 9)])
    if isinstance(value, float):
        return rng.choice([value + 1, value - 1, round(value / 2, 3), round(value + rng.random(), 2)])
    if isinstance(value, str | list | tuple) and len(value):
        row: Any = value
        at, to = rng.randrange(len(row)), rng.randrange(len(row))
        change = [row[:at] + row[at + 1 :], row[:to] + row[at : at + 1] + row[to:]]
        if not isinstance(row, str):
            change.append(row[:at] + type(row)([varied(row[at], rng)]) + row[at + 1 :])
        return rng.choice(change)
    return value


PROBE = """
for _call in {calls!r}:
    try:
        _found = repr(eval(_call))
    except Exception:
        _found = None
    print({mark!r} + __import__("json").dumps(_found), flush=True)
"""


def _returned(programs: Sequence[str], calls: Sequence[Sequence[str]]) -> list[dict[str, str | None]]:
    """Of each program: its calls with what they return, written as a literal; None where it raises, or returns what is none."""
    runs = [ProgramRun(p + PROBE.format(calls=list(c), mark=MARK)) for p, c in zip(programs, calls, strict=True)]
    return [_told(out.stdout, own) for out, own in zip(Sandbox(SECOND).run_programs(runs), calls, strict=True)]


def _told(printed: str, calls: Sequence[str]) -> dict[str, str | None]:
    lines = [line.removeprefix(MARK) for line in printed.splitlines() if line.startswith(MARK)]
    values = [json.loads(line) for line in lines]
    # after a call that did not come to an end, none has a value
    values += [None] * (len(calls) - len(values))
    return {call: value if _literal(value) else None for call, value in zip(calls, values, strict=True)}


def _literal(text: str | None) -> bool:
    try:
        return text is not None and ast.literal_eval(text) == ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
