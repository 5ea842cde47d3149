"""Accuracy of a search, compared with plain samples of as many tokens."""

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
    """pass@1 of single samples; search, best_of_n: of the answer with the highest value by the model `value`, among the leaves of
    the search, and among n whole replies. n is such that both sampled as many tokens (rounded up, in favour of best_of_n).
    """
    before = run.policy.token_count.generated
    searched = search(list(problems), run)
    tokens = run.policy.token_count.generated - before
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sampling, rng = Sampling(run.max_new, temperature), run.rng("eval")
    first = run.policy.extend(prompts, sampling, rng)
    single = sum(int(t.mask.sum()) for t in first)
    n = max(1, math.ceil(tokens / single))
    more = run.policy.extend([t for t in prompts for _ in range(n - 1)], sampling, rng)
    replies = [[t, *more[i * (n - 1) : (i + 1) * (n - 1)]] for i, t in enumerate(first)]
    return {
        "pass@1": _right([[t] for t in first], run),
        "search": _right([[_best(g, value, run)] for g in searched], run),
        "best_of_n": _right([[_best(g, value, run)] for g in replies], run),
        "draws": float(n),
    }


def _best(group: Group, value: str, run: Run) -> Trajectory:
    values = last_values(run.model(value), group)
    return replace(group[int(np.argmax(values))])


def _right(groups: list[Group], run: Run) -> float:
    return float(np.mean([s.value is not None and s.value >= 1.0 for row in run.verify(groups, run) for s in row]))
