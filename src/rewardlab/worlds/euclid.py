"""Greatest common divisors by subtraction, from two steps to thirty, with a difficulty that the question does not show.

    Greatest common divisor of 21 and 6?    21-6=15
                                            15-6=9
                                            9-6=3
                                            6-3=3
                                            Answer: 3

The number of steps is the sum of the partial quotients of a/b, whose distribution falls only as 1/k^2 (Khinchin 1935): the lengths
of replies have a long tail.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training


def euclid(
    *,
    largest: PositiveInt = 60,
    longest: PositiveInt = 24,
    test_size: PositiveInt = 200,
    size: PositiveInt | None = None,
    error: Share = 0.06,
) -> Task:
    """Numbers up to `largest` whose divisor takes at most `longest` steps.

    error: how often, per step, the teacher of `demonstrate` writes a difference that is off by one.
    size: so many training problems, in epochs; None: endless.
    """
    if not 4 <= largest <= 999 or not 2 <= longest <= 100:
        raise RewardlabError(
            f"euclid: largest must be between 4 and 999 and longest between 2 and 100, not {largest} and {longest}"
        )
    if not 0 <= error <= 1:
        raise RewardlabError(f"euclid: error is a probability between 0 and 1, not {error}")
    sample, key = partial(_sample, largest=largest, longest=longest), ("euclid", largest, longest)
    return Task(
        name="euclid",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_number",
        max_new=8 * (longest + 2),
        about=f"greatest common divisors of numbers up to {largest} by subtraction, in 1 to {longest} steps",
        demonstrate=partial(_demonstrate, error=error, longest=longest),
        columns=("prompt", "answer", "a", "b", "steps", "solution"),
    )


def _sample(rng: random.Random, *, largest: int, longest: int) -> Problem:
    while True:
        a, b = rng.randint(2, largest), rng.randint(2, largest)
        steps, divisor = _subtract(a, b, longest)
        if steps and divisor:
            text = "\n".join([*steps, f"Answer: {divisor}"])
            return ask(f"Greatest common divisor of {a} and {b}?", divisor, steps=steps, solution=text, a=a, b=b)


def _subtract(a: int, b: int, longest: int, slip: random.Random | None = None, error: float = 0.0) -> tuple[list[str], int]:
    """The lines from a and b to where both are equal, and that number; 0 where `longest` lines do not get there."""
    steps: list[str] = []
    while a != b and len(steps) < longest:
        high, low = max(a, b), min(a, b)
        result = high - low
        if slip is not None and slip.random() < error:
            # above 0, or the subtraction would never end
            result = max(1, result + slip.choice((-1, 1)))
        steps.append(f"{high}-{low}={result}")
        a, b = result, low
    return steps, a if a == b else 0


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, longest: int) -> str:
    """The gold steps, or steps with slips, from which the rest carries on."""
    steps, divisor = _subtract(problem.meta["a"], problem.meta["b"], longest, rng, error)
    return "\n".join([*steps, f"Answer: {divisor or 1}"])
