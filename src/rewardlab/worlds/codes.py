"""Programs of the small language, asked for in words and judged by tests: inputs and outputs, as the verifier `code` has them.

    Numbers over 3, times 2: largest?       keep > 3; * 2; max            [["[]", "0"], ["[4]", "8"], ["[2, 7, 3]", "14"], ...]

Most tests have short lists, on which many wrong programs are right by luck; few have long ones. The column `suite` holds tests on
long lists alone: how near a program is to what was asked for.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.programs import Program, ProgramError, parse, read_value, run, show_value
from rewardlab.tasks.sources import test_set, training
from rewardlab.verifiers.contract import Verdict, no_verdict, right, verifier, wrong

# ---- What programs are asked for in words, and how a careless programmer writes them ---------------------------------
#
# Numbers over 3, times 2: smallest?      keep > 3; * 2; min            right
#                                         keep > 3; * 2; sort; head     right, and slow
#                                         keep > 2; * 2; head           as the careless one writes it

LISTS = {
    "over {k}": "keep > {k}", "under {k}": "keep < {k}", "even": "keep even", "odd": "keep odd", "without repeats": "unique",
    "plus {k}": "+ {k}", "times {k}": "* {k}", "first {k}": "take {k}", "reversed": "reverse",
}  # fmt: skip
"""Stages that make lists of lists, by the words for them."""
FOLDS = {"largest": "max", "smallest": "min", "total": "sum", "count": "len", "last": "last"}
SLOW = {"max": "sort; last", "min": "sort; head", "sum": "reverse; sum", "len": "sort; len", "last": "reverse; head"}
"""The same with more operations."""


def asked(stages: list[str], fold: str) -> str:
    return f"Numbers {', '.join(stages)}: {fold}?"


def slip(program: str, rng: random.Random, biased: float, error: float, slow: float) -> str:
    """The program as a careless programmer writes it.

    biased: how often it makes each of three mistakes wherever it can: bounds are taken to be inside, repeats stay, the first number
    is the smallest.  error: how often the text is broken, or its stages do not fit.  slow: how often the last stage is done slowly.
    """
    slips = [rng.random() < biased for _ in range(3)]
    *lists, fold = program.split("; ")
    lists = [_at_bound(stage) if slips[0] else stage for stage in lists if not (slips[1] and stage == "unique")]
    if slips[2] and fold == "min":
        fold = "head"
    elif rng.random() < slow:
        fold = SLOW[fold]
    if rng.random() >= error:
        return "; ".join([*lists, fold])
    # after a number no list can be kept, and a word that is no operation cannot be read
    return "; ".join([fold, *lists, "sort"]) if rng.random() < 0.5 else "; ".join([*lists, f"the {fold}"])


def _at_bound(stage: str) -> str:
    """`keep > 3` as somebody writes it who takes 3 to be over 3."""
    name, _, number = stage.rpartition(" ")
    step = {"keep >": -1, "keep <": 1}.get(name)
    return stage if step is None else f"{name} {int(number) + step}"


# ---- the task ---------------------------------------------------------------------------------------------------------

LENGTHS = (0, 1, 1, 2, 2, 3, 5, 8)
"""Of the lists of the tests."""
SUITE, LONG = 12, 8
"""Tests of the column `suite`, and the length of their lists."""


def codes(
    *, biased: Share = 0.7, error: Share = 0.15, slow: Share = 0.3, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:
    """Programs of three stages.

    biased, error, slow: of the teacher of `demonstrate` (`language.slip`).  size: so many training problems, in epochs; None:
    endless.
    """
    for name, share in (("biased", biased), ("error", error), ("slow", slow)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"codes: {name} is a probability between 0 and 1, not {share}")
    key = ("codes",)
    return Task(
        name="codes",
        train=training(_sample, key, size),
        test=test_set(_sample, key, test_size),
        verifier="list_program",
        max_new=32,
        about="small programs asked for in words, judged by tests of which most are easy",
        demonstrate=partial(_demonstrate, biased=biased, error=error, slow=slow),
        columns=("prompt", "answer", "suite", "solution"),
    )


def _sample(rng: random.Random) -> Problem:
    words = rng.sample(sorted(LISTS), 2)
    # bounds and counts of more than the digits and lengths of the lists would change nothing
    numbers = [rng.randint(2, 50 if word.startswith(("plus", "times")) else 7) for word in words]
    stages = [word.format(k=k) for word, k in zip(words, numbers, strict=True)]
    fold = rng.choice(sorted(FOLDS))
    solution = "; ".join([*(LISTS[word].format(k=k) for word, k in zip(words, numbers, strict=True)), FOLDS[fold]])
    answer, suite = ({"io": _io(solution, lengths, rng)} for lengths in (LENGTHS, (LONG,) * SUITE))
    return ask(asked(stages, fold), answer, suite=suite, solution=solution)


def _io(solution: str, lengths: tuple[int, ...], rng: random.Random) -> list[list[str]]:
    inputs = [[rng.randint(0, 9) for _ in range(length)] for length in lengths]
    return [[show_value(x), show_value(run(parse(solution), x).value)] for x in inputs]


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float, slow: float) -> str:
    return slip(problem.meta["solution"], rng, biased, error, slow)


# ---- The verifier of programs of the small language (`tasks.programs`) -----------------------------------------------

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
