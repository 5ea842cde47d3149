"""Chains of integer arithmetic, "Start with 7. Add 5. Multiply by 3.", whose every step can be checked.

All values stay within 0..99. The gold solution has one line a step and then the answer:

    7+5=12
    12*3=36
    Answer: 36
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError

from .sources import test_set, training

VALUES = range(100)
WORDS = {"+": "Add", "-": "Subtract", "*": "Multiply by"}
INVERSE = {"+": "-", "-": "+", "*": "/"}
APPLY: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}

Step = tuple[str, int]


def arithmetic(
    *, difficulty: int | tuple[int, int] = 3, redundant: Share = 0.0, error: Share = 0.22, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Multi-step chains over 0..99.

    difficulty: steps of a chain, a number or (lowest, highest).  redundant, error: how the teacher of `demonstrate`
    writes, as probabilities per step: an extra line that only checks, and a result that is a near miss (later steps
    carry on from it).  test_size: at most so many test problems, fewer where the chains are too short to differ.
    size: so many training problems, in epochs; None: endless.
    """
    low, high = _bounds(difficulty)
    for name, share in (("redundant", redundant), ("error", error)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"arithmetic: {name} is a probability between 0 and 1, not {share}")
    sample, key = partial(_sample, low=low, high=high), ("arithmetic", low, high)
    return Task(
        name="arithmetic",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_number",
        max_new=max(64, 12 * (high + 1) * (2 if redundant else 1)),
        about=f"chains of {low if low == high else f'{low} to {high}'} arithmetic steps over 0..99",
        demonstrate=partial(_demonstrate, redundant=redundant, error=error),
        pass_rate=0.49 if (low, high) == (3, 3) else None,
        columns=("prompt", "answer", "steps", "solution"),
        step_verifier="sound_steps",
    )


def _bounds(difficulty: int | tuple[int, int]) -> tuple[int, int]:
    match difficulty:
        case int():
            low = high = difficulty
        case (int() as low, int() as high):
            pass
        case _:
            low = high = 0
    if not 1 <= low <= high:
        raise RewardlabError(f"arithmetic: difficulty is a number of steps from 1 up, or (lowest, highest), not {difficulty}")
    return low, high


def _sample(rng: random.Random, *, low: int, high: int) -> Problem:
    value = rng.randint(1, 20)
    question, steps = [f"Start with {value}."], []
    for _ in range(rng.randint(low, high)):
        sign, operand = _choose(value, rng)
        result = APPLY[sign](value, operand)
        question.append(f"{WORDS[sign]} {operand}.")
        steps.append(f"{value}{sign}{operand}={result}")
        value = result
    solution = "\n".join([*steps, f"Answer: {value}"])
    return ask(" ".join(question), str(value), steps=steps, solution=solution)


def _choose(value: int, rng: random.Random) -> Step:
    """A random operation that keeps the value within 0..99: each kind that fits is equally likely."""
    ranges = {
        "+": (1, min(9, VALUES[-1] - value)),
        "-": (1, min(9, value)),
        "*": (2, min(5, VALUES[-1] // value) if value else 0),
    }
    sign = rng.choice([sign for sign, (least, most) in ranges.items() if least <= most])
    return sign, rng.randint(*ranges[sign])


def _demonstrate(problem: Problem, rng: random.Random, *, redundant: float, error: float) -> str:
    """The solution as a careless teacher writes it; the answer follows from what was computed."""
    value, program = _parse(problem.meta["steps"])
    lines = []
    for i, (sign, operand) in enumerate(program):
        left, value = value, APPLY[sign](value, operand)
        if rng.random() < error:
            value = _near_miss(left, sign, operand, program[i + 1 :], rng)
        lines.append(f"{left}{sign}{operand}={value}")
        if rng.random() < redundant:
            lines.append(_check(left, sign, operand, value))
    return "\n".join([*lines, f"Answer: {value}"])


def _parse(steps: list[str]) -> tuple[int, list[Step]]:
    """The start and the operations of a list of steps "7+5=12"."""
    start, program = 0, []
    for i, step in enumerate(steps):
        sign = next(sign for sign in APPLY if sign in step)
        left, operand = step.partition("=")[0].split(sign)
        start = int(left) if i == 0 else start
        program.append((sign, int(operand)))
    return start, program


def _near_miss(left: int, sign: str, operand: int, rest: list[Step], rng: random.Random) -> int:
    """A wrong result, off by 1, 2 or 10 or by a wrong operation, from which the rest of the chain still fits."""
    right = APPLY[sign](left, operand)
    candidates = {right + off for off in (-10, -2, -1, 1, 2, 10)} | {apply(left, operand) for apply in APPLY.values()}
    # sorted, so that the choice does not depend on the order of a set
    fitting = [result for result in sorted(candidates - {right}) if _fits(result, rest)]
    return rng.choice(fitting) if fitting else right


def _fits(value: int, program: list[Step]) -> bool:
    for sign, operand in program:
        if value not in VALUES:
            return False
        value = APPLY[sign](value, operand)
    return value in VALUES


def _check(left: int, sign: str, operand: int, result: int) -> str:
    """A true line that adds nothing: the step undone, or, where a wrong result cannot be undone, a true difference."""
    quotient, remainder = divmod(result, operand)
    undone = {"+": result - operand, "-": result + operand, "*": -1 if remainder else quotient}[sign]
    if undone in VALUES:
        return f"{result}{INVERSE[sign]}{operand}={undone}"
    larger, smaller = max(left, result), min(left, result)
    return f"{larger}-{smaller}={larger - smaller}"
