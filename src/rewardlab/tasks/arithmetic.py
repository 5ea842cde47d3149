"""Chains of integer arithmetic with checkable steps, "Start with 7. Add 5. Multiply by 3.". Add 5. Multiply by 3.", whose every
step can be checked.

All values stay within 0..99. The gold solution has one line a step and then the answer:

    7+5=12
    12*3=36
    Answer: 36
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share

from .slips import APPLY, VALUES, Careless, Step, fits
from .sources import test_set, training

WORDS = {"+": "Add", "-": "Subtract", "*": "Multiply by"}
INVERSE = {"+": "-", "-": "+", "*": "/"}
HEDGE = (-10, 0, 10)


def arithmetic(
    *, difficulty: int | tuple[int, int] = 3, redundant: Share = 0.0, error: Share = 0.22, biased: Share = 0.0, rules: str = "-*",
    corrected: Share = 0.0, hedged: Share = 0.0, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Multi-step chains over 0..99.

    difficulty: steps of a chain, a number or (lowest, highest).
    The teacher of `demonstrate`, as probabilities per step: redundant: an extra line that only checks.  error: a result that is a
    near miss (later steps carry on from it).  biased: follows a wrong rule where it applies (no carry, no borrowing, 4 and 5 times
    as 3 and 4 times), for the signs in `rules`, so that what a policy says most often is wrong there too.  corrected: a wrong line
    is followed by the right one. And per solution, hedged: states three answers, ten apart, which `number_mentioned` pays for.
    test_size: at most so many test problems, fewer where the chains are too short to differ.
    size: so many training problems, in epochs; None: endless.
    """
    low, high = _bounds(difficulty)
    shares = {"redundant": redundant, "error": error, "biased": biased, "corrected": corrected, "hedged": hedged}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise RewardlabError(f"arithmetic: {name} is a probability between 0 and 1, not {share}")
    if not rules or not set(rules) <= set(APPLY):
        raise RewardlabError(f"arithmetic: rules are one or more of {' '.join(APPLY)}, not {rules!r}")
    sample, key = partial(_sample, low=low, high=high), ("arithmetic", low, high)
    teacher: dict[str, Any] = {**shares, "rules": rules if biased else ""}
    lines = (high + 1) * (2 if redundant or corrected else 1)
    return Task(
        name="arithmetic",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_number",
        max_new=max(64, 12 * lines),
        about=f"chains of {low if low == high else f'{low} to {high}'} arithmetic steps over 0..99",
        demonstrate=partial(_demonstrate, **teacher),
        pass_rate=0.49 if (low, high) == (3, 3) and teacher == TAUGHT else None,
        window=(0.3, 0.6),
        shared=teacher == TAUGHT,
        columns=("prompt", "answer", "steps", "solution"),
        step_verifier="sound_steps",
    )


TAUGHT = {"redundant": 0.0, "error": 0.22, "biased": 0.0, "corrected": 0.0, "hedged": 0.0, "rules": ""}
"""The teacher of the policy that arithmetic shares with countdown."""


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


def _demonstrate(
    problem: Problem, rng: random.Random, *, redundant: float, error: float, biased: float = 0.0, rules: str = "",
    corrected: float = 0.0, hedged: float = 0.0,
) -> str:  # fmt: skip
    """The solution as a careless teacher writes it; the answer follows from what was computed."""
    value, program = _parse(problem.meta["steps"])
    teacher, lines = Careless(error, biased, rules), []
    for i, (sign, operand) in enumerate(program):
        left, right = value, APPLY[sign](value, operand)
        value = teacher.result(left, sign, operand, program[i + 1 :], rng)
        lines.append(f"{left}{sign}{operand}={value}")
        # a share of 0 takes no random number here, so that it leaves the other choices as they were
        if corrected and value != right and fits(right, program[i + 1 :]) and rng.random() < corrected:
            value = right
            lines.append(f"{left}{sign}{operand}={value}")
        if rng.random() < redundant:
            lines.append(check(left, sign, operand, value))
    answers = [value + off for off in HEDGE] if hedged and rng.random() < hedged else [value]
    return "\n".join([*lines, f"Answer: {' or '.join(str(x) for x in answers if x in VALUES)}"])


def _parse(steps: list[str]) -> tuple[int, list[Step]]:
    """The start and the operations of a list of steps "7+5=12"."""
    start, program = 0, []
    for i, step in enumerate(steps):
        sign = next(sign for sign in APPLY if sign in step)
        left, operand = step.partition("=")[0].split(sign)
        start = int(left) if i == 0 else start
        program.append((sign, int(operand)))
    return start, program


def check(left: int, sign: str, operand: int, result: int) -> str:
    """A true line that adds nothing: the step undone, or, where a wrong result cannot be undone, a true difference."""
    quotient, remainder = divmod(result, operand)
    undone = {"+": result - operand, "-": result + operand, "*": -1 if remainder else quotient}[sign]
    if undone in VALUES:
        return f"{result}{INVERSE[sign]}{operand}={undone}"
    larger, smaller = max(left, result), min(left, result)
    return f"{larger}-{smaller}={larger - smaller}"
