"""Discrimination of a reward within groups: groups with a signal, preference for better replies, and the top-ranked one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Score, Scores, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward

SAME = 1e-9
"""Rewards that differ by less are equal."""


@measure
def told_apart(
    problems: Sequence[Problem], run: Run, *, reward: Reward, truth: Reward, rollout: Rollout, among: Reward | None = None
) -> dict[str, float]:
    """How well `reward` discriminates between the replies that `rollout` samples to each problem; nothing is trained.

    signal: share of groups in which it pays two replies differently.  agreement: share of the pairs of replies to one problem, of
    which `truth` finds one better, where it pays the better one more; ties count half.  signal.X, agreement.X: the same by the term
    X alone, in the direction of its weight.  truth: its mean; pairs: how many were compared.
    among: look only at replies that this pays at least 1.

    Replies without a verdict by one of them are left out.  Raises RewardlabError where no pair is left.
    """
    groups = rollout(list(problems), run)
    if among is not None:
        groups = _only(groups, among(groups, run))
    rows = [
        [(s, t.total) for s, t in zip(row, true, strict=True) if s.total is not None and t.total is not None]
        for row, true in zip(reward(groups, run), truth(groups, run), strict=True)
    ]
    names = [name for score, _ in next(filter(None, rows), [])[:1] for name in score.terms]
    by = {"": [[(_total(s), t) for s, t in row] for row in rows]}
    by |= {f".{name}": [[(_term(s, name), t) for s, t in row] for row in rows] for name in names}
    agreed = {name: _agreement(table) for name, table in by.items()}
    if not agreed[""]:
        raise RewardlabError(f"told_apart: {truth} finds no reply to any of {len(problems)} problems better than another")
    low, high = mean_interval(agreed[""])
    numbers = {f"agreement{name}": float(np.mean(wins)) for name, wins in agreed.items()}
    numbers |= {f"signal{name}": float(np.mean([_differ(row) for row in table])) for name, table in by.items()}
    counts = {"n": float(len(rows)), "pairs": float(len(agreed[""])), "truth": float(np.mean([t for row in rows for _, t in row]))}
    return {**numbers, "ci95_low": low, "ci95_high": high, **counts}


@measure
def best_paid(problems: Sequence[Problem], run: Run, *, reward: Reward, rollout: Rollout) -> dict[str, float]:
    """For each term X of `reward` the mean over the samples of `rollout`, and, as best.X, over the highest-rewarded reply to each
    problem (the mean of ties). reward, best.reward: of the whole.

    So the best.X say where a policy is led that learns from this reward. Replies without a verdict are left out.
    """
    rows = [[s for s in row if s.total is not None] for row in reward(rollout(list(problems), run), run)]
    rows = [row for row in rows if row]
    if not rows:
        raise RewardlabError(f"{reward} gave no verdict on any of {len(problems)} problems")
    best = [[s for s in row if _total(s) >= max(map(_total, row)) - SAME] for row in rows]
    numbers = {}
    for prefix, table in (("", rows), ("best.", best)):
        numbers[f"{prefix}reward"] = float(np.mean([np.mean([_total(s) for s in row]) for row in table]))
        for name in rows[0][0].terms:
            numbers[f"{prefix}{name}"] = float(np.mean([np.mean([_value(s, name) for s in row]) for row in table]))
    low, high = mean_interval([float(np.mean([_total(s) for s in row])) for row in rows])
    return {**numbers, "ci95_low": low, "ci95_high": high, "n": float(len(rows))}


def _only(groups: Sequence[Group], scores: Scores) -> list[Group]:
    pairs = [zip(group, row, strict=True) for group, row in zip(groups, scores, strict=True)]
    return [[t for t, s in row if s.total is not None and s.total >= 1.0] for row in pairs]


def _total(score: Score) -> float:
    assert score.total is not None
    return score.total


def _term(score: Score, name: str) -> float:
    """A term's number, turned round where it is a penalty."""
    term, value = score.terms.get(name), _value(score, name)
    return -value if term is not None and term.weight is not None and term.weight < 0 else value


def _value(score: Score, name: str) -> float:
    """A term's number; 0 where this reply has none."""
    term = score.terms.get(name)
    return 0.0 if term is None or term.value is None else term.value


def _agreement(table: list[list[tuple[float, float]]]) -> list[float]:
    """For each pair of replies to one problem of unequal truth: 1 where the better one is paid more, 1/2 for a tie."""
    wins = []
    for row in table:
        for a, b in combinations(row, 2):
            if abs(a[1] - b[1]) > SAME:
                paid = (a[0] - b[0]) * (1 if a[1] > b[1] else -1)
                wins.append(0.5 if abs(paid) <= SAME else float(paid > 0))
    return wins


def _differ(row: list[tuple[float, float]]) -> bool:
    paid = [x for x, _ in row]
    return len(paid) > 1 and max(paid) - min(paid) > SAME
