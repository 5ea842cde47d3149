"""The policy's verdicts on its own replies, and its confidence in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.filled import filled

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
    said = _verdicts(right, wrong).findall(text)
    return said[-1].casefold() == right.casefold() if said else None


def _verdicts(right: str, wrong: str) -> re.Pattern[str]:
    return re.compile(rf"\bFinal: {{0,3}}['\"*]{{0,3}}({re.escape(right)}|{re.escape(wrong)})(?!\w)", re.IGNORECASE)


@reward(over="groups")
def own_verdict(
    groups: list[Group], run: Run, *, ask: str = ASK, right: str = RIGHT, wrong: str = WRONG, samples: PositiveInt = 1,
    max_new: PositiveInt = 256, model: str = "policy", soft: bool = False,
) -> Scores:  # fmt: skip
    """The share of `samples` self-checks of a reply that end with the verdict that it is right.

    ask: what it reads, see `to_check`.  model: who checks, the policy or another model of the run.  max_new: tokens of a check.
    soft: a check counts by the chance of its verdict, p(right) / (p(right) + p(wrong)), instead of by the verdict that was sampled.
    No verdict on a reply that does not fit the model's context beside its check, or of which no check ends with a verdict.
    """
    rollouts, judge = [t for group in groups for t in group], run.model(model)
    asked = [to_check(t.problem, t.reply, ask, right, wrong) for t in rollouts]
    read = judge.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    fits = [i for i, row in enumerate(read) if len(row) + max_new <= judge.context]
    rows = [read[i] for i in fits for _ in range(samples)]
    checks = judge.extend(rows, Sampling(max_new), run.rng("own_verdict")) if rows else []
    said = (
        chances(judge, rows, [t.reply for t in checks], right, wrong) if soft else [verdict(t.reply, right, wrong) for t in checks]
    )
    known = {i: said[k * samples : (k + 1) * samples] for k, i in enumerate(fits)}
    scores = iter([_score(known.get(i)) for i in range(len(rollouts))])
    return [[next(scores) for _ in group] for group in groups]


def chances(
    judge: Any, asked: Sequence[Trajectory], checks: Sequence[str], right: str = RIGHT, wrong: str = WRONG
) -> list[float | None]:
    """For each check, sampled after the row in its place, the chance of `right` at its last verdict; None where it has none."""
    stems = [check[: said[-1].start(1)] if (said := list(_verdicts(right, wrong).finditer(check))) else None for check in checks]
    known = [(t, stem) for t, stem in zip(asked, stems, strict=True) if stem is not None]
    found = iter(chance_of(judge, [t for t, _ in known], [stem for _, stem in known], right, wrong))
    return [None if stem is None else next(found) for stem in stems]


def chance_of(judge: Any, rows: Sequence[Trajectory], stems: Sequence[str], right: str, wrong: str) -> list[float]:
    """p(right) / (p(right) + p(wrong)) of a reply that goes on from each stem with one of two words, and ends there.

    The stem's own probability is in both, and cancels. Zhao et al. 2025, arXiv:2504.00891; Khalifa et al. 2025, arXiv:2504.16828
    """
    if not rows:
        return []
    both = [[stem + word for stem in stems] for word in (right, wrong)]
    written = judge.write([*rows, *rows], [*both[0], *both[1]])
    sums = [float(x[len(t) :].sum()) for x, t in zip(judge.score(written), [*rows, *rows], strict=True)]
    return [1 / (1 + float(np.exp(min(700.0, no - yes)))) for yes, no in zip(sums[: len(rows)], sums[len(rows) :], strict=True)]


def _score(said: Sequence[float | None] | None) -> Score:
    if said is None:
        return Score(None, why="the reply is too long to be checked")
    if not (found := [x for x in said if x is not None]):
        return Score(None, why="no verdict found")
    return Score(float(np.mean(found)), why=f"{sum(found):.3g} of {len(found)} checks")
