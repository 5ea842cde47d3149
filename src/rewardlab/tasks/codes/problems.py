"""Programs of the small language, asked for in words and judged by tests: inputs and outputs, as the verifier `code` has them.

    Numbers over 3, times 2: largest?       keep > 3; * 2; max            [["[]", "0"], ["[4]", "8"], ["[2, 7, 3]", "14"], ...]

Most tests have short lists, on which many wrong programs are right by luck; few have long ones. The column `suite` holds tests on
long lists alone: how near a program is to what was asked for.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError
from rewardlab.tasks.programs import parse, run, show_value
from rewardlab.tasks.sources import test_set, training

from .language import FOLDS, LISTS, asked, slip

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
