"""What a policy says of its own replies when it is asked to check them."""

from __future__ import annotations

import re

import numpy as np

from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Trajectory
from rewardlab.core.domain import PositiveInt
from rewardlab.text.filled import filled

from .reward import reward

ASK = (
    "Problem:\n{question}\n\nSolution:\n{steps}\n\nCheck this solution line by line. End with 'Final: {right}' if its answer is "
    "right, and with 'Final: {wrong}' if it is wrong."
)
RIGHT, WRONG = "right", "wrong"


def to_check(problem: Problem, solution: str, ask: str = ASK, right: str = RIGHT, wrong: str = WRONG) -> Problem:
    """The problem of checking a solution. ask: with {question}, {solution} or its numbered lines {steps}, {right} and {wrong}."""
    steps = "\n".join(f"{i}: {line}" for i, line in enumerate(solution.splitlines(), 1))
    return problem.reworded(
        filled(ask, question=problem.question, solution=solution, steps=steps, right=right, wrong=wrong)
    )  # fmt: skip


def verdict(text: str, right: str = RIGHT, wrong: str = WRONG) -> bool | None:
    """The last "Final: ..." of a text; None where there is none. A word that only begins like one of the two is neither."""
    pattern = rf"\bFinal: {{0,3}}['\"*]{{0,3}}({re.escape(right)}|{re.escape(wrong)})(?!\w)"
    said = re.findall(pattern, text, re.IGNORECASE)
    return said[-1].casefold() == right.casefold() if said else None


@reward(over="groups")
def own_verdict(
    groups: list[Group], run: Run, *, ask: str = ASK, right: str = RIGHT, wrong: str = WRONG, samples: PositiveInt = 1,
    max_new: PositiveInt = 256, model: str = "policy",
) -> Scores:  # fmt: skip
    """The share of `samples` checks of a reply, written by the policy itself, that end with the verdict that it is right.

    ask: what it reads, see `to_check`.  model: who checks, the policy or another model of the run.  max_new: tokens of a check.
    No verdict on a reply that does not fit the model's context beside its check, or of which no check ends with a verdict.
    """
    rollouts, judge = [t for group in groups for t in group], run.model(model)
    asked = [to_check(t.problem, t.reply, ask, right, wrong) for t in rollouts]
    read = judge.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    fits = [i for i, row in enumerate(read) if len(row) + max_new <= judge.context]
    rows = [read[i] for i in fits for _ in range(samples)]
    checks = judge.extend(rows, Sampling(max_new), run.rng("own_verdict")) if rows else []
    said = [verdict(t.reply, right, wrong) for t in checks]
    known = {i: said[k * samples : (k + 1) * samples] for k, i in enumerate(fits)}
    scores = iter([_score(known.get(i)) for i in range(len(rollouts))])
    return [[next(scores) for _ in group] for group in groups]


def _score(said: list[bool | None] | None) -> Score:
    if said is None:
        return Score(None, why="the reply is too long to be checked")
    if not (found := [x for x in said if x is not None]):
        return Score(None, why="no verdict found")
    return Score(float(np.mean(found)), why=f"{sum(found)} of {len(found)} checks")
