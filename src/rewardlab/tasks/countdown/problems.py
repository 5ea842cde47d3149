"""Countdown: "Use 3, 5, 7 to make 9.", each number once. Many answers may be right, so the verifier evaluates them.

Solvable by construction. The gold solution works step by step and then writes the whole expression:

    7-3=4
    4+5=9
    Answer: 7-3+5
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations, product
from typing import Any, NamedTuple

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

VALUES = range(100)
TAUGHT = {"error": 0.2, "signs": "+-", "habit": None}
"""The teacher of the policy that countdown shares with arithmetic; it is taught numbers up to 20."""
APPLY: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}


class Chain(NamedTuple):
    """Numbers combined from left to right."""

    steps: list[str]
    expression: str
    value: int

    @property
    def text(self) -> str:
        return "\n".join([*self.steps, f"Answer: {self.expression}"])


def countdown(
    *, numbers: PositiveInt = 3, signs: str = "+-", test_size: PositiveInt = 1000, size: PositiveInt | None = None,
    error: Share = 0.2, largest: PositiveInt = 20, habit: Share | None = None,
) -> Task:  # fmt: skip
    """Reach a target in 0..99 from `numbers` numbers in 1..`largest` with the operations in `signs` (of + - *).

    error: how often the teacher of `demonstrate` writes an attempt that misses the target.  habit: how often its right solutions
    go the one way that it prefers, the larger numbers first, and otherwise any other right way; None: as the problem was made.
    test_size: at most so many
    test problems, fewer where the numbers and signs do not give so many.
    size: so many training problems, in epochs; None: endless.
    """
    if not 2 <= numbers <= 6:
        raise RewardlabError(f"countdown: numbers must be between 2 and 6, not {numbers}")
    if not 0 <= error <= 1:
        raise RewardlabError(f"countdown: error is a probability between 0 and 1, not {error}")
    if not signs or not set(signs) <= set(APPLY):
        raise RewardlabError(f"countdown: signs are one or more of {' '.join(APPLY)}, not {signs!r}")
    signs = "".join(sign for sign in APPLY if sign in signs)
    if not numbers <= largest < len(VALUES):
        raise RewardlabError(f"countdown: largest must be between {numbers}, the count of numbers, and 99, not {largest}")
    sample = partial(_sample, count=numbers, signs=signs, largest=largest)
    # the default is left out of the key, so that its problems are those that they always were
    key = ("countdown", numbers, signs, *([largest] if largest != 20 else []))
    teacher: dict[str, Any] = {"error": error, "signs": signs, "habit": habit}
    return Task(
        name="countdown",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="countdown_equation",
        max_new=max(64, 20 * numbers),
        about=f"make a target in 0..99 from {numbers} numbers, each used once",
        demonstrate=partial(_demonstrate, **teacher),
        shared=teacher == TAUGHT and largest == 20,
        pass_rate=0.30 if (numbers, largest) == (3, 20) and teacher == TAUGHT else None,
        columns=("prompt", "answer", "numbers", "target", "steps", "solution"),
    )


def _sample(rng: random.Random, *, count: int, signs: str, largest: int) -> Problem:
    numbers = sorted(rng.randint(1, largest) for _ in range(count))
    while (chain := _combine(numbers, rng, signs)) is None:
        numbers = sorted(rng.randint(1, largest) for _ in range(count))
    return ask(
        f"Use {', '.join(map(str, numbers))} to make {chain.value}.",
        chain.expression,
        numbers=numbers,
        target=chain.value,
        steps=chain.steps,
        solution=chain.text,
    )


def _combine(numbers: list[int], rng: random.Random, signs: str) -> Chain | None:
    """The numbers in a random order, joined by random operations, every value within 0..99; None where none fits."""
    first, *others = rng.sample(numbers, len(numbers))
    value, chosen = first, []
    for number in others:
        possible = [sign for sign in signs if APPLY[sign](value, number) in VALUES]
        if not possible:
            return None
        chosen.append(rng.choice(possible))
        value = APPLY[chosen[-1]](value, number)
    return _chain(first, others, chosen)


def _chain(first: int, others: Sequence[int], signs: Sequence[str]) -> Chain | None:
    """Numbers combined from left to right; None where a value is not within 0..99."""
    value, expression, steps, ends_on_sum = first, str(first), [], False
    for number, sign in zip(others, signs, strict=True):
        result = APPLY[sign](value, number)
        if result not in VALUES:
            return None
        steps.append(f"{value}{sign}{number}={result}")
        # brackets are needed only where a product follows a sum or difference
        expression = f"({expression}){sign}{number}" if ends_on_sum and sign == "*" else f"{expression}{sign}{number}"
        value, ends_on_sum = result, sign != "*"
    return Chain(steps, expression, value)


def right_ways(numbers: Sequence[int], target: int, signs: str) -> list[Chain]:
    """All ways from left to right, those that begin with the larger numbers first."""
    orders = sorted(set(permutations(numbers)), reverse=True)
    chains = (_chain(order[0], order[1:], s) for order in orders for s in product(signs, repeat=len(numbers) - 1))
    return [chain for chain in chains if chain is not None and chain.value == target]


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, signs: str, habit: float | None = None) -> str:
    """A right solution, or an honest attempt that ends at another number."""
    if rng.random() >= error:
        return problem.meta["solution"] if habit is None else _by_habit(problem, rng, signs, habit)
    for _ in range(100):
        chain = _combine(problem.meta["numbers"], rng, signs)
        if chain is not None and chain.value != problem.meta["target"]:
            return chain.text
    return problem.meta["solution"]


def _by_habit(problem: Problem, rng: random.Random, signs: str, habit: float) -> str:
    preferred, *others = right_ways(problem.meta["numbers"], problem.meta["target"], signs)
    return (preferred if not others or rng.random() < habit else rng.choice(others)).text
