"""Solutions in steps with labels, as annotators write them down and scorers of steps learn from: of writers of several skills.

A step is right if it and all before it are those of the gold solution. Annotators of training solutions err; whether a solution's
answer is right they know, as a verifier does. Held-out solutions, of which there are several to a question, have true labels.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rewardlab.core import Problem, Task, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.pairs import Paired
from rewardlab.tasks.sources import OnDemand

SKILLS = (0.05, 0.2, 0.4, 0.6)
"""How often the writers err, per step."""


def labelled_solutions(
    *, difficulty: int | tuple[int, int] = 3, biased: Share = 0.0, noise: Share = 0.0, several: PositiveInt = 8,
    test_size: PositiveInt = 200, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Chains of arithmetic, each with one solution to learn from.

    noise: share of the training labels of steps that are turned round; those of whole solutions are true.  biased: share of the
    writers' steps that follow a wrong rule where it applies (`arithmetic`).  several: solutions to a held-out question.
    test_size: held-out questions at most.  size: questions to learn from, in epochs; None: endless.
    """
    task = arithmetic(difficulty=difficulty, biased=biased, test_size=test_size, size=size)
    write = partial(_labelled, task.demonstrate)
    return replace(
        task, name="labelled_solutions", train=Paired(task.train, partial(write, noise=noise)),
        test=OnDemand(partial(_held_out, task.test, write, several)),
        about=f"solutions with labelled steps, of: {task.about}", columns=("prompt", "answer", "steps", "labels", "right"),
        demonstrate=None, warmed_as=f"arithmetic:difficulty={_formula(difficulty)}" + (f",biased={biased}" if biased else ""),
    )  # fmt: skip


def _labelled(demonstrate: Any, problem: Problem, rng: random.Random, *, noise: float = 0.0) -> Problem:
    """The problem with a solution of one of the writers, its labels, and whether it is right."""
    lines = demonstrate(problem, rng, error=rng.choice(SKILLS)).splitlines()
    gold = problem.meta["solution"].splitlines()
    same = [line == want for line, want in zip(lines, gold, strict=True)]
    true = [all(same[: i + 1]) for i in range(len(same))]
    # sampled whatever the share, so that a higher share only turns more of the same labels
    labels = [float(label != (rng.random() < noise)) for label in true]
    return replace(problem, meta={"steps": lines, "labels": labels, "right": lines[-1] == gold[-1]})


def _held_out(questions: Sequence[Problem], write: Any, several: int) -> Iterator[Problem]:
    """The solutions to a question stand together."""
    for problem in questions:
        yield from (write(problem, random.Random(seed_of("held out", problem.key, i))) for i in range(several))


def _formula(difficulty: int | tuple[int, int]) -> str:
    return str(difficulty if isinstance(difficulty, int) else list(difficulty)).replace(" ", "")
