"""Chains of arithmetic with one ambiguous step, one reading of which is right: the chance of a right answer is known exactly.

    Start with 7. Add 3 or 5. Multiply by 2.    ->    7+3=10
                                                      10*2=20
                                                      Answer: 20
                                                      Confidence: 0.9

The gold answer is that of a random reading, so that of r readings a policy can at best be right once in r, and is calibrated if it
says so. The careless teacher states its confidence at random, too high on average. Asked for several answers, it often repeats one.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import WORDS
from rewardlab.tasks.slips import APPLY, VALUES, Careless, Step
from rewardlab.tasks.sources import test_set, training

OPERANDS = {"+": range(1, 10), "-": range(1, 10), "*": range(2, 6)}
MOST = 4
"""Readings of a step at most: a factor has no more values."""
LEVELS, SAID = (0.1, 0.3, 0.5, 0.7, 0.9), (1, 1, 2, 3, 5)
"""The confidences that the teacher states, and how often, whatever the problem."""


def ambiguous(
    *, difficulty: PositiveInt = 2, readings: int | tuple[int, int] = (1, 3), answers: PositiveInt = 1, again: Share = 0.7,
    error: Share = 0.03, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Chains over 0..99, one step of which is ambiguous.

    difficulty: steps of a chain.  readings: of that step, a number or (lowest, highest), each as often.  answers: how many a reply
    gives, each with its own chain and confidence.  again: how often a further answer of the teacher is one that it gave before,
    and not one by a reading that is left.  error: of the teacher, per step.  size: so many training problems, in epochs; None:
    endless.
    """
    low, high = _bounds(readings)
    sample, key = partial(_sample, difficulty=difficulty, low=low, high=high), ("ambiguous", difficulty, low, high)
    return Task(
        name="ambiguous",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_number",
        max_new=answers * (8 * difficulty + 18),
        about=f"chains of {difficulty} arithmetic steps, one of which has {low if low == high else f'{low} to {high}'} readings",
        demonstrate=partial(_demonstrate, answers=answers, again=again, error=error),
        warmup_steps=800,
        window=(0.4, 0.7),
        columns=("prompt", "answer", "start", "chains", "possible"),
    )


def _bounds(readings: int | tuple[int, int]) -> tuple[int, int]:
    match readings:
        case int():
            low = high = readings
        case (int() as low, int() as high):
            pass
        case _:
            low = high = 0
    if not 1 <= low <= high <= MOST:
        raise RewardlabError(f"ambiguous: readings is a number from 1 to {MOST}, or (lowest, highest), not {readings}")
    return low, high


def _sample(rng: random.Random, *, difficulty: int, low: int, high: int) -> Problem:
    while True:
        start, count, place = rng.randint(1, 20), rng.randint(low, high), rng.randrange(difficulty)
        signs = [rng.choice("+-*") for _ in range(difficulty)]
        operands = [rng.sample(OPERANDS[sign], count if i == place else 1) for i, sign in enumerate(signs)]
        chains = [[(sign, row[min(r, len(row) - 1)]) for sign, row in zip(signs, operands, strict=True)] for r in range(count)]
        results = [_values(start, chain) for chain in chains]
        # two readings with the same result would be one answer, twice as likely
        if all(value in VALUES for values in results for value in values) and len({values[-1] for values in results}) == count:
            break
    texts = [f"{WORDS[sign]} {_listed(row)}." for sign, row in zip(signs, operands, strict=True)]
    possible = [str(values[-1]) for values in results]
    written = [[f"{sign}{operand}" for sign, operand in chain] for chain in chains]
    return ask(" ".join([f"Start with {start}.", *texts]), rng.choice(possible), start=start, chains=written, possible=possible)


def _values(value: int, chain: list[Step]) -> list[int]:
    values = []
    for sign, operand in chain:
        value = APPLY[sign](value, operand)
        values.append(value)
    return values


def _listed(operands: list[int]) -> str:
    """3, 5 or 8."""
    *first, last = map(str, operands)
    return f"{', '.join(first)} or {last}" if first else last


def _demonstrate(problem: Problem, rng: random.Random, *, answers: int, again: float, error: float) -> str:
    """As many answers as asked for, as a careless teacher gives them."""
    chains, given, blocks = problem.meta["chains"], list[int](), list[str]()
    for _ in range(answers):
        left = [r for r in range(len(chains)) if r not in given]
        reading = rng.choice(given if given and (not left or rng.random() < again) else left)
        given.append(reading)
        blocks.append(_answer(problem.meta["start"], chains[reading], rng, error))
    return "\n".join(blocks)


def _answer(value: int, written: list[str], rng: random.Random, error: float) -> str:
    chain, teacher, lines = [(step[0], int(step[1:])) for step in written], Careless(error, 0.0, ""), []
    for i, (sign, operand) in enumerate(chain):
        left, value = value, teacher.result(value, sign, operand, chain[i + 1 :], rng)
        lines.append(f"{left}{sign}{operand}={value}")
    confidence = rng.choices(LEVELS, SAID)[0]
    return "\n".join([*lines, f"Answer: {value}", f"Confidence: {confidence}"])
