"""Errors of the arithmetic teacher: at random, or by a wrong rule that it follows most of the time."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import dataclass

VALUES = range(100)
APPLY: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}

Step = tuple[str, int]


@dataclass(frozen=True)
class Careless:
    """A teacher's carelessness, as probabilities per step.

    error: a near miss, at random.  biased: follows its wrong rule where that applies, for the signs in `rules`.
    """

    error: float
    biased: float = 0.0
    rules: str = "-*"

    def result(self, left: int, sign: str, operand: int, rest: list[Step], rng: random.Random) -> int:
        """What the teacher takes for the result of a step; the rest of the chain fits it."""
        right = APPLY[sign](left, operand)
        # a share of 0 takes no random number, so that it leaves the other choices as they were
        if self.biased and sign in self.rules and (wrong := by_wrong_rule(left, sign, operand)) != right:
            follows = rng.random() < self.biased
            if follows and fits(wrong, rest):
                return wrong
        return near_miss(left, sign, operand, rest, rng) if rng.random() < self.error else right


def by_wrong_rule(left: int, sign: str, operand: int) -> int:
    """A step by a rule that is wrong: no carry, no borrowing, and 4 and 5 times as 3 and 4 times; else it is right.

    It depends on the step alone, so that a policy can learn it, and unlearn it.
    """
    right = APPLY[sign](left, operand)
    wrong = {
        "+": right - 10 if left % 10 + operand % 10 > 9 else right,
        "-": right + 10 if left % 10 < operand % 10 else right,
        "*": left * (operand - 1) if operand > 3 else right,
    }
    return wrong[sign]


def near_miss(left: int, sign: str, operand: int, rest: list[Step], rng: random.Random) -> int:
    """A wrong result, off by 1, 2 or 10 or by a wrong operation, from which the rest of the chain still fits."""
    right = APPLY[sign](left, operand)
    candidates = {right + off for off in (-10, -2, -1, 1, 2, 10)} | {apply(left, operand) for apply in APPLY.values()}
    # sorted, so that the choice does not depend on the order of a set
    fitting = [result for result in sorted(candidates - {right}) if fits(result, rest)]
    return rng.choice(fitting) if fitting else right


def fits(value: int, rest: list[Step]) -> bool:
    """Whether all values of a chain that goes on from here stay within 0..99."""
    for sign, operand in rest:
        if value not in VALUES:
            return False
        value = APPLY[sign](value, operand)
    return value in VALUES
