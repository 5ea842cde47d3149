"""Small programs with error-prone generated tests instead of known outputs.

The column `generated` holds pairs of input and output, as the answer's `io` does; some outputs are wrong, many of them as a
careless programmer would have it. Programs are judged by the answer's own tests, which no choice among them may read.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.programs import Program, ProgramError, Value, parse, run, show_value
from rewardlab.tasks.sources import Shuffled, changed
from rewardlab.worlds.codes import codes, slip

LONGEST = 6
"""Of the lists that a tester thinks of."""


def poor_tests(
    *, tests: PositiveInt = 32, wrong: Share = 0.3, alike: Share = 0.5, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """The problems of `codes`, with `tests` generated tests each.

    wrong: how often a test's output is wrong where it can be.  alike: how often a wrong one is what a careless programmer's program
    gives, so that wrong programs pass it; else it is off by one.  size: so many training problems, in epochs; None: endless.
    """
    of: Any = codes(test_size=test_size, size=size)
    told = partial(with_tests, tests=tests, wrong=wrong, alike=alike)
    return replace(
        of,
        name="poor_tests",
        train=_Told(of.train, told) if size is None else Shuffled([told(p) for p in of.train.problems]),
        test=changed(of.test, told),
        about="small programs, with tests that a careless tester wrote",
        columns=(*of.columns, "generated"),
        warmed_as="codes",
    )


@dataclass(frozen=True)
class _Told:
    """The problems of a source, with tests."""

    of: Any
    told: Callable[[Problem], Problem]

    def __getitem__(self, position: int) -> Problem:
        return self.told(self.of[position])


def with_tests(problem: Problem, tests: int, wrong: float, alike: float) -> Problem:
    """The problem with its generated tests, the same ones whenever they are asked for."""
    rng = random.Random(seed_of("poor_tests", problem.key))
    solution, careless = (parse(text) for text in (problem.meta["solution"], slip(problem.meta["solution"], rng, 1.0, 0.0, 0.0)))
    written = [_test(solution, careless, rng, wrong, alike) for _ in range(tests)]
    return replace(problem, meta={**problem.meta, "generated": written})


def _test(solution: Program, careless: Program, rng: random.Random, wrong: float, alike: float) -> list[str]:
    value = [rng.randint(0, 9) for _ in range(rng.randint(0, LONGEST))]
    output = run(solution, value).value
    if rng.random() < wrong:
        if rng.random() < alike:
            output = _output(careless, value, output)
        elif isinstance(output, int):
            output += rng.choice((-1, 1))
    return [show_value(value), show_value(output)]


def _output(program: Program, value: list[int], otherwise: Value) -> Value:
    try:
        return run(program, value).value
    except ProgramError:
        return otherwise
