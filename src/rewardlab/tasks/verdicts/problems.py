"""Judging solutions: chains of arithmetic as a careless solver writes them, to be judged right or wrong, step by step.

A step is right if it goes on from the number before it, does what the question asks next, and comes out right; so the step
that goes wrong is wrong, and those that only carry its result on are right. The answer is right if it is the gold answer.
"""

from __future__ import annotations

import random
import re
from functools import partial

from rewardlab.core import Problem, Task
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError
from rewardlab.tasks.arithmetic import APPLY, arithmetic
from rewardlab.tasks.sources import test_set, training

from .language import to_judge, written

_EQUATION = re.compile(r"(\d+)([-+*])(\d+)=\d+")
NEAR = (-10, -2, -1, 1, 2, 10)


def verdicts(
    *,
    difficulty: int = 3,
    error: Share = 0.22,
    doubt: Share = 0.15,
    test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
) -> Task:
    """Solutions of arithmetic chains of `difficulty` steps.

    error: of the solver, per step.  doubt: how often the teacher of `demonstrate` gets a step wrong when checking it; the
    verdicts follow from that.  size: so many training problems, in epochs; None: endless.
    """
    for name, share in (("error", error), ("doubt", doubt)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"verdicts: {name} is a probability between 0 and 1, not {share}")
    sample, key = partial(_sample, difficulty=difficulty, error=error), ("verdicts", difficulty, error)
    return Task(
        name="verdicts",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_verdict",
        max_new=20 * (difficulty + 1),
        about=f"solutions of {difficulty} arithmetic steps, to be judged step by step",
        demonstrate=partial(_demonstrate, doubt=doubt),
        columns=("prompt", "answer", "count", "lines", "should", "verdicts", "solution"),
        warmup_steps=1000,
    )


def _sample(rng: random.Random, *, difficulty: int, error: float) -> Problem:
    solver = arithmetic(difficulty=difficulty, error=error, test_size=1)
    # a random position of an endless source is a random problem
    problem = solver.train[rng.getrandbits(40)]
    assert solver.demonstrate is not None
    lines = solver.demonstrate(problem, rng).splitlines()
    should = worked(problem.meta["steps"], lines)
    judged = [line == want for line, want in zip(lines, should, strict=True)]
    right = lines[-1] == f"Answer: {problem.answer}"
    return to_judge(
        problem.question, lines, right, lines=lines, should=should, verdicts=judged, solution=written(lines, judged, right, should)
    )


def worked(gold: list[str], lines: list[str]) -> list[str]:
    """What each line of a solution should have been, given those before it; `gold`: the right equations.

    After the last of them, every line should be the answer.
    """
    value, should = _EQUATION.fullmatch(gold[0])[1], []  # type: ignore[index]
    for want, line in zip(gold, lines, strict=False):
        _, sign, operand = _EQUATION.fullmatch(want).groups()  # type: ignore[union-attr]
        # a line of the solver may end on anything; only small numbers are carried on
        computable = value.isascii() and value.isdigit() and len(value) < 7
        should.append(f"{value}{sign}{operand}={APPLY[sign](int(value), int(operand)) if computable else '?'}")
        value = line.rpartition("=")[2]
    return [*should, *(f"Answer: {value}" for _ in lines[len(gold) :])]


def _demonstrate(problem: Problem, rng: random.Random, *, doubt: float) -> str:
    """The judgement of a careless teacher, who calls a right step wrong where the teacher's own result is wrong."""
    should = [_slip(step, rng) if rng.random() < doubt else step for step in problem.meta["should"]]
    judged = [line == want for line, want in zip(problem.meta["lines"], should, strict=True)]
    return written(problem.meta["lines"], judged, all(judged), should)


def _slip(step: str, rng: random.Random) -> str:
    """The step with a result that is a little off."""
    left, sign, result = step.rpartition(": " if step.startswith("Answer") else "=")
    wrong_results = [value for off in NEAR if (value := int(result) + off) >= 0]
    return f"{left}{sign}{rng.choice(wrong_results)}"
