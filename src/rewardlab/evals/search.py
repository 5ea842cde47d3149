"""Accuracy of a search, compared with plain samples at the same token count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Sampling, Trajectory, last_values, measure
from rewardlab.core.domain import NonNegativeFloat


@measure
def search_accuracy(
    problems: Sequence[Problem], run: Run, *, search: Rollout, value: str = "value", temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """pass@1 of single samples, of `search`, and of best-of-n with as many tokens.

    search, best_of_n: accuracy of the answer that the model `value` values most, among the leaves of the search and among n plain
    replies.  draws: n, the token count of the search divided by that of one reply per problem, rounded up in favour of best_of_n.
    """
    # measured, not computed: searches stop early where their trees end
    before = run.policy.token_count.generated
    searched = search(list(problems), run)
    tokens = run.policy.token_count.generated - before
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sampling, rng = Sampling(run.max_new, temperature), run.rng("eval")
    singles = run.policy.extend(prompts, sampling, rng)
    single = sum(int(t.mask.sum()) for t in singles)
    n = max(1, math.ceil(tokens / single))
    more = run.policy.extend([t for t in prompts for _ in range(n - 1)], sampling, rng)
    # the single sample is the first of the n, so that no tokens are sampled twice
    replies = [[t, *more[i * (n - 1) : (i + 1) * (n - 1)]] for i, t in enumerate(singles)]
    return {
        "pass@1": _right([[t] for t in singles], run),
        "search": _right([[_best(g, value, run)] for g in searched], run),
        "best_of_n": _right([[_best(g, value, run)] for g in replies], run),
        "draws": float(n),
    }


def _best(group: Group, value: str, run: Run) -> Trajectory:
    """The row that the model `value` values most."""
    values = last_values(run.model(value), group)
    return replace(group[int(np.argmax(values))])


def _right(groups: list[Group], run: Run) -> float:
    """The share of right rows; a row without a verdict counts as wrong."""
    return float(np.mean([s.value is not None and s.value >= 1.0 for row in run.verify(groups, run) for s in row]))
