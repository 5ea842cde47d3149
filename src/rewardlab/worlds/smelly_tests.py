"""Unit tests of small functions, by a writer who is often careless about how a test should look.

    def add(a, b): return a + b        ->      def test_add():
                                                # sum
                                                assert add(2, 3) == 5

Each property of a good test is missing now and then, on its own: the assertion, the call, a comment, a name, the syntax. Some are
there twice, or under a condition. All can be read in the text.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

FUNCTIONS: dict[str, tuple[str, str, Callable[[int, int], int]]] = {
    "add": ("a + b", "sum", lambda a, b: a + b),
    "minus": ("a - b", "difference", lambda a, b: a - b),
    "times": ("a * b", "product", lambda a, b: a * b),
    "larger": ("max(a, b)", "larger", max),
    "smaller": ("min(a, b)", "smaller", min),
}


def smelly_tests(*, smell: Share = 0.4, test_size: PositiveInt = 200, size: PositiveInt | None = None) -> Task:
    """Functions to be tested, and their names in the column `focal`.

    smell: how often the careless writer spoils each property of a test.  size: so many training problems, in epochs; None: endless.
    """
    return Task(
        name="smelly_tests",
        train=training(_sample, ("smelly_tests",), size),
        test=test_set(_sample, ("smelly_tests",), test_size),
        verifier="static_quality",
        max_new=48,
        about="functions to be tested by a unit test",
        demonstrate=partial(_demonstrate, smell=smell),
        columns=("prompt", "answer", "focal", "number", "solution"),
    )


def _sample(rng: random.Random) -> Problem:
    name, number = rng.choice(list(FUNCTIONS)), rng.randint(2, 999)
    body = FUNCTIONS[name][0]
    question = f"def {name}(a, b): return {body}\nTest it with {number}."
    return ask(question, "", focal=name, number=number, solution=_written(name, number, rng.randint(2, 9)))


def _written(name: str, a: int, b: int) -> str:
    _, comment, call = FUNCTIONS[name]
    return f"def test_{name}():\n # {comment}\n assert {name}({a}, {b}) == {call(a, b)}"


def _demonstrate(problem: Problem, rng: random.Random, *, smell: float) -> str:
    """A test in which each property is spoilt with the chance `smell`; the syntax half as often."""
    name, a, b = problem.meta["focal"], problem.meta["number"], rng.randint(2, 9)
    head, comment, check = _written(name, a, b).splitlines()
    spoilt = [rng.random() < smell for _ in range(6)]
    if spoilt[0]:
        check = check.replace("assert ", "").replace(" == ", "\n # ")
    elif spoilt[1]:
        check = check.replace(f"{name}({a}, {b})", str(FUNCTIONS[name][2](a, b)))
    if spoilt[2]:
        check = f"{check}\n{check}"
    if spoilt[3]:
        check = f" if True: {check.strip()}" if "\n" not in check else check
    if spoilt[4]:
        head = "def test1():"
    if rng.random() < smell / 2:
        head = head.rstrip(":")
    return "\n".join([head, *([] if spoilt[5] else [comment]), check])
