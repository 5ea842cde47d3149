"""Replies sampled at the temperature, and selected at the threshold of their score, that give many right replies and few others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import PositiveFloat, PositiveInt
from rewardlab.rewards.reward import Reward

SELECTED = "selected"
"""The tag of the replies that are selected."""
MEMORY = "balanced.temperature"
THRESHOLDS = 200
"""How many thresholds are tried at most: no more than a search of this fineness can tell apart, however many replies there are."""


class Candidate(NamedTuple):
    """A reply that may be selected. place: in its group."""

    score: float
    right: bool
    place: int


class Selection(NamedTuple):
    """balance: mean balance score.  threshold: the least score that is selected.  rows: of each group, the places selected."""

    balance: float
    threshold: float
    rows: list[list[int]]


@rollout(inner="of", across_problems=True)
def balanced(
    problems: list[Problem], run: Run, *, of: Rollout, by: Reward, wanted: PositiveInt = 8, target: PositiveFloat = 6.0,
    lowest: PositiveFloat = 0.5, highest: PositiveFloat = 1.2, temperatures: PositiveInt = 4, threshold: float | None = None,
    every: PositiveInt = 10,
) -> list[Group]:  # fmt: skip
    """What `of` samples at the temperature of the round, with those replies tagged as SELECTED that are worth imitating.

    by: the score.  wanted, target: as in `select`.  A round is `every` steps; at its start the policy answers the step's problems
    at each of so many `temperatures`, evenly spaced from `lowest` to `highest`, and the one of the highest mean balance score
    stays for the round; of equal ones the lowest.  threshold: of the score, the same throughout; None: found anew for each
    selection. Rightness is the task's verifier's. Held-out problems are sampled at the round's temperature, without a selection.
    Logs balance, temperature, threshold and replies selected per problem. Zeng et al. 2024, arXiv:2412.17256
    """
    round_ = run.memory.get(MEMORY)
    if run.held_out:
        return of.but_innermost(temperature=round_["temperature"])(problems, run) if round_ else of(problems, run)

    def sampled(temperature: float) -> tuple[list[Group], Selection]:
        groups = of.but_innermost(temperature=temperature)(problems, run)
        return groups, select(candidates(groups, by, run), wanted=wanted, target=target, threshold=threshold)

    if round_ is None or run.step - round_["since"] >= every:
        grid = [float(x) for x in np.linspace(lowest, highest, temperatures)]
        # max keeps the first of equal ones; with one temperature there is nothing to find out
        best = max(grid, key=lambda t: sampled(t)[1].balance) if len(grid) > 1 else grid[0]
        round_ = run.memory[MEMORY] = {"since": run.step, "temperature": best}
    groups, found = sampled(round_["temperature"])
    run.log("balance", found.balance)
    run.log("temperature", round_["temperature"])
    run.log("selected", sum(map(len, found.rows)) / max(1, len(groups)))
    if any(found.rows):
        run.log("threshold", found.threshold)
    return [_tagged(group, set(rows)) for group, rows in zip(groups, found.rows, strict=True)]


def balance_score(selected: int, right: int, wanted: int) -> float:
    """min(right / wanted, 1) * right / selected: enough right replies, and few others. 0 where nothing is selected."""
    return min(right / wanted, 1.0) * right / selected if selected else 0.0


def candidates(groups: Sequence[Group], by: Reward, run: Run) -> list[list[Candidate]]:
    """Of each group the replies that may be selected, best first: each text once, and none without a score or a verdict."""
    found = []
    for group, scores, verdicts in zip(groups, by(list(groups), run), run.verdicts(list(groups)), strict=True):
        unique: dict[tuple[str, ...], Candidate] = {}
        for i, (t, score, verdict) in enumerate(zip(group, scores, verdicts, strict=True)):
            if score.total is not None and verdict.value is not None:
                unique.setdefault(tuple(t.replies), Candidate(score.total, verdict.value >= 1, i))
        # sorted is stable: of equal scores the reply that was sampled first comes first
        found.append(sorted(unique.values(), key=lambda c: -c.score))
    return found


def select(
    table: Sequence[Sequence[Candidate]], *, wanted: int = 8, target: float = 6.0, threshold: float | None = None
) -> Selection:
    """The best candidates of each problem with a score of `threshold` or more; None: that of the highest mean balance score, of
    equal ones the lowest.

    wanted: how many right replies to a problem are enough.  target: replies per problem that are selected over all; every problem
    gives as many as any other that has them, and as few as will do.
    If no reply at all is right, all thresholds are equal: what passes the lowest is selected.
    """
    scores = np.unique([c.score for row in table for c in row])
    tried = [threshold] if threshold is not None else scores[_spread(len(scores))].tolist()
    best: Selection | None = None
    for least in tried:
        passing = np.array([sum(c.score >= least for c in row) for row in table])
        taken = np.minimum(passing, _each(passing, target * len(table)))
        rows = [row[:k] for row, k in zip(table, taken, strict=True)]
        balance = math.fsum(balance_score(len(row), sum(c.right for c in row), wanted) for row in rows) / max(1, len(rows))
        if best is None or balance > best.balance:
            best = Selection(balance, least, [[c.place for c in row] for row in rows])
    # without a candidate there is no threshold to try
    return best or Selection(0.0, np.inf, [[] for _ in table])


def _spread(count: int) -> np.ndarray:
    """Places of at most THRESHOLDS of `count` sorted numbers, evenly spaced, both ends among them."""
    return np.unique(np.linspace(0, max(0, count - 1), min(count, THRESHOLDS)).round().astype(int))


def _each(passing: np.ndarray, total: float) -> int:
    """The least k such that k replies of each problem, or all that pass, are `total` together; all, if they are not enough."""
    most = int(passing.max(initial=0))
    return next((k for k in range(1, most) if np.minimum(passing, k).sum() >= total), most)


def _tagged(group: Group, chosen: set[int]) -> Group:
    return [replace(t, tag=SELECTED) if i in chosen else t for i, t in enumerate(group)]
