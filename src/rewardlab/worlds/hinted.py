"""Chains of arithmetic with a hint each: the right result of the first step that a wrong rule would get wrong.

    Start with 12. Subtract 7. Multiply by 3.       12-7=5, the column `hint`: in no prompt, unless it is put there

The small policy was taught prompts with the hint and without. It follows its wrong rules, but copies what a hint says.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.pairs import Paired, all_paired
from rewardlab.tasks.slips import by_wrong_rule

HINT = "{question} Hint: {hint}"
"""How a hint is put into the question, {question} and {hint} filled in."""


def hinted(
    *, told: Share = 0.0, biased: Share = 0.95, error: Share = 0.05, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:
    """The problems of arithmetic, with the column `hint`.

    told: the share of prompts with the hint in them (`HINT`).  biased, error: of the teacher, as in arithmetic; where it is told a
    step it writes that.  size: so many training problems, in epochs; None: endless.
    """
    if not 0 <= told <= 1:
        raise RewardlabError(f"hinted: told is a share between 0 and 1, not {told}")
    task = arithmetic(biased=biased, error=error, test_size=test_size, size=size)
    assert task.demonstrate is not None
    hint = partial(_hint, told=told)
    taught = {} if biased == 0.95 and error == 0.05 else {"biased": biased, "error": error}
    settings = ",".join(f"{k}={v}" for k, v in {"told": 0.5, **taught}.items())
    return replace(
        task, name="hinted", train=Paired(task.train, hint), test=all_paired(task.test, hint),
        demonstrate=partial(_demonstrate, careless=task.demonstrate), columns=(*task.columns, "hint"), window=(0.2, 0.6),
        warmup_steps=600, about="chains of arithmetic, with a hint for each in a column of its own",
        warmed_as=None if told else f"hinted:{settings}",
    )  # fmt: skip


def _hint(problem: Problem, rng: random.Random, *, told: float) -> Problem:
    steps = problem.meta["steps"]
    hint = next((step for step in steps if _misleads(step)), steps[0])
    shown = problem.reworded(HINT.format(question=problem.question, hint=hint)) if told and rng.random() < told else problem
    return replace(shown, meta={**problem.meta, "hint": hint})


def _misleads(step: str) -> bool:
    """Whether the teacher's wrong rule gets this step wrong."""
    sign = next(sign for sign in "-*+" if sign in step)
    left, _, operand = step.partition("=")[0].partition(sign)
    return sign != "+" and f"{by_wrong_rule(int(left), sign, int(operand))}" != step.partition("=")[2]


def _demonstrate(problem: Problem, rng: random.Random, *, careless: Callable[[Problem, random.Random], str]) -> str:
    """The careless teacher's solution; told a step, it is asked again until its solution has it."""
    text = careless(problem, rng)
    if problem.question.endswith(f"Hint: {problem.meta['hint']}"):
        # bounded: at most the solution itself, in which the step stands
        for _ in range(200):
            if problem.meta["hint"] in text.splitlines():
                return text
            text = careless(problem, rng)
        return problem.meta["solution"]
    return text
