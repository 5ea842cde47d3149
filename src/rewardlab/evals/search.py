"""What a search finds, against plain draws for as many tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Sampling, Trajectory, last_values, measure


@measure
def search_accuracy(
    problems: Sequence[Problem], run: Run, *, search: Rollout, value: str = "value", temperature: float = 1.0
) -> dict[str, float]:
    """pass@1 of single draws; search, best_of_n: of the answer that the model `value` thinks most of, among those that the
    search ended with, and among n whole replies, n such that both drew as many tokens (rounded in favour of best_of_n).
    """
    spent = run.policy.token_count.generated
    searched = search(list(problems), run)
    drawn = run.policy.token_count.generated - spent
    asked = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    whole, rng = Sampling(run.max_new, temperature), run.rng("eval")
    first = run.policy.extend(asked, whole, rng)
    single = sum(int(t.mask.sum()) for t in first)
    n = max(1, math.ceil(drawn / single))
    more = run.policy.extend([t for t in asked for _ in range(n - 1)], whole, rng)
    replies = [[t, *more[i * (n - 1) : (i + 1) * (n - 1)]] for i, t in enumerate(first)]
    return {
        "pass@1": _right([[t] for t in first], run),
        "search": _right([[_best(g, value, run)] for g in searched], run),
        "best_of_n": _right([[_best(g, value, run)] for g in replies], run),
        "draws": float(n),
    }


def _best(group: Group, value: str, run: Run) -> Trajectory:
    said = last_values(run.model(value), group)
    return replace(group[int(np.argmax(said))])


def _right(groups: list[Group], run: Run) -> float:
    return float(np.mean([s.value is not None and s.value >= 1.0 for row in run.verify(groups, run) for s in row]))
