"""Conflicts between reward terms, and of each term with the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from rewardlab.core import Group, Run, Score, Scores

Truth = Sequence[Sequence[float | None]]

MOST = 8
"""Terms that are compared: eight make 28 pairs, and more could not be read."""


def truth_of(groups: list[Group], scores: Scores, run: Run) -> list[list[float | None]]:
    """The verdicts of the task's own verifier on the training rollouts, whatever the policy was rewarded with."""
    # the recipe's reward ran the verifier already
    if scores and all("correct" in s.terms for row in scores for s in row):
        return [[s.terms["correct"].value for s in row] for row in scores]
    if run.verify is None:
        return [[None] * len(g) for g in groups]
    return [[s.value for s in row] for row in run.detached().verdicts(groups)]


def conflicts(scores: Scores, truth: Truth) -> dict[str, float]:
    """Numbers for the log, from a step's scores and verdicts; none where a single term adds to the reward.

    conflict/A~B: of the pairs of replies to one problem that both terms tell apart, the share that they order differently.
    untrue/A: of the pairs of a right and a wrong reply that A tells apart, the share in which the wrong one earns more by A.
    A term that is subtracted is called -A, and a reply earns more by it the lower it is.
    """
    terms = compared(scores)
    if len(terms) < 2:
        return {}
    names = list(terms)
    both, opposed = np.zeros((len(names) + 1,) * 2), np.zeros((len(names) + 1,) * 2)
    for row, verdicts in zip(scores, truth, strict=True):
        order = _orders([*(_values(row, *terms[name]) for name in names), _numbers(verdicts)])
        both += np.abs(order) @ np.abs(order).T
        # pairs that agree count +1 in the product and those that do not -1
        opposed += (np.abs(order) @ np.abs(order).T - order @ order.T) / 2
    # the verdict itself may be a term
    places = [(i, j, f"conflict/{names[i]}~{names[j]}") for i, j in combinations(range(len(names)), 2)]
    places += [(i, len(names), f"untrue/{name}") for i, name in enumerate(names) if name != "correct"]
    return {name: float(opposed[i, j] / both[i, j]) for i, j, name in places if both[i, j]}


def compared(scores: Scores) -> dict[str, tuple[str, float]]:
    """The terms that add to the reward, the first MOST of them: by the names that the log gives them, each term with its sign.

    What a product or a gate was computed from is left out: nothing says in which direction it pulls.
    """
    weights = {name: term.weight for row in scores for score in row for name, term in score.terms.items()}
    paid = [(name, math.copysign(1.0, weight)) for name, weight in weights.items() if weight]
    return {name if sign > 0 else f"-{name}": (name, sign) for name, sign in paid[:MOST]}


def _values(row: Sequence[Score], name: str, sign: float) -> np.ndarray:
    """(n,) what each reply earns by a term, NaN without a verdict."""
    terms = [score.terms.get(name) for score in row]
    return np.array([np.nan if term is None or not term.numbers else sign * sum(term.numbers) for term in terms])


def _numbers(verdicts: Sequence[float | None]) -> np.ndarray:
    return np.array([np.nan if x is None else float(x >= 1) for x in verdicts])


def _orders(columns: Sequence[np.ndarray]) -> np.ndarray:
    """(K, pairs) 1 where the first reply of a pair earns more by a column, -1 where the second does, 0 where neither does."""
    first, second = np.triu_indices(len(columns[0]), 1)
    differences = np.array([column[first] - column[second] for column in columns])
    # differences of rounding are no order
    return np.where(np.abs(differences) > 1e-9, np.sign(np.nan_to_num(differences)), 0.0)
