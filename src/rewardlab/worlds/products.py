"""Products of small and of large numbers, which can be said at once or left to an interpreter of code.

    What is 6 * 7?             Answer: 42
    What is 68 * 74?           <code>68 * 74</code>
    <interpreter>
    5032
    </interpreter>             Answer: 5032

A policy knows the small products by heart, and no large one. The teacher runs code for both equally often.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.code_calls import ANSWER, CLOSE, OPEN

SMALL, LARGE = (2, 9), (13, 99)
"""The least and the largest factors."""


def products(
    *, large: Share = 0.5, calls: Share = 0.4, error: Share = 0.05, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:
    """Products of two numbers of one digit, or of two.

    large: share of the latter.  The teacher of `demonstrate`: calls: how often it runs code.  error: how often it says a small
    product wrongly; a large one it does not know.  size: so many training problems, in epochs; None: endless.
    """
    key = ("products", large)
    return Task(
        name="products",
        train=training(sample := partial(_sample, large=large), key, size),
        test=test_set(sample, key, test_size),
        verifier="final_number",
        max_new=24,
        about="products to be said at once or computed by code",
        environment="untold_interpreter",
        turns=2,
        demonstrate=partial(_demonstrate, calls=calls, error=error),
        columns=("prompt", "answer", "large", "solution"),
        warmup_steps=600,
        window=(0.2, 0.7),
    )


def _sample(rng: random.Random, *, large: float) -> Problem:
    is_large = rng.random() < large
    a, b = (rng.randint(*(LARGE if is_large else SMALL)) for _ in range(2))
    # in words too, so that enough different texts of small products are there to hold some of them out
    asked = rng.choice(("What is {} * {}?", "Compute {} * {}.", "Give me {} * {}.", "{} * {} is what?"))
    return ask(asked.format(a, b), str(a * b), large=is_large, solution=_talk(f"{a} * {b}", a * b))


def _talk(code: str, result: int) -> list[str]:
    """What is said by who runs code, and what it is answered."""
    return [f"{OPEN}{code}{CLOSE}", f"{ANSWER[0]}\n{result}\n{ANSWER[1]}", f"Answer: {result}"]


def _demonstrate(problem: Problem, rng: random.Random, *, calls: float, error: float) -> list[str]:
    if rng.random() < calls:
        return problem.meta["solution"]
    result = int(problem.answer)
    if problem.meta["large"]:
        return [f"Answer: {rng.randint(LARGE[0] ** 2, LARGE[1] ** 2)}"]
    return [f"Answer: {result + rng.choice((-2, -1, 1, 2)) if rng.random() < error else result}"]
