"""Accuracy of a search, compared with plain samples at the same token count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Sampling, Trajectory, last_values, measure
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.util.ranking import auc_of


@measure
def search_accuracy(
    problems: Sequence[Problem], run: Run, *, search: Rollout, value: str = "value", temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """pass@1 of single samples, of `search`, and of best-of-n with as many tokens.

    search, best_of_n: accuracy of the answer that the model `value` values most, among the leaves of the search and among n plain
    replies.  Tokens are those that the policy generates and those that `value` reads, on both sides: a search reads every step that
    it tries, best-of-n each reply once.  draws: n, the tokens of the search divided by those of one valued reply per problem,
    rounded up in favour of best_of_n.  value_share: the share of the search's tokens that `value` read.  value_auc: how often
    `value` values a right one of the plain replies above a wrong one; a search by values at chance, .5, shows nothing.
    """
    # measured, not computed: searches stop early where their trees end
    before = _spent(run, value)
    chosen = [[_best(g, value, run)] for g in search(list(problems), run)]
    generated, read = (after - at_first for after, at_first in zip(_spent(run, value), before, strict=True))
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sampling, rng = Sampling(run.max_new, temperature), run.rng("eval")
    singles = run.policy.extend(prompts, sampling, rng)
    # a reply costs its own tokens, and all of its text once more where it is valued
    single = sum(int(t.mask.sum()) + len(t) for t in singles)
    n = max(1, math.ceil((generated + read) / single))
    more = run.policy.extend([t for t in prompts for _ in range(n - 1)], sampling, rng)
    # the single sample is the first of the n, so that no tokens are sampled twice
    replies = [[t, *more[i * (n - 1) : (i + 1) * (n - 1)]] for i, t in enumerate(singles)]
    valued = [last_values(run.model(value), group) for group in replies]
    verdicts = _verdicts(replies, run)
    best = [row[int(np.argmax(known))] for row, known in zip(verdicts, valued, strict=True)]
    pairs = [pair for known, row in zip(valued, verdicts, strict=True) for pair in zip(known, row, strict=True)]
    return {
        "pass@1": float(np.mean([row[0] for row in verdicts])),
        "search": float(np.mean(_verdicts(chosen, run))),
        "best_of_n": float(np.mean(best)),
        "draws": float(n),
        "value_share": read / (generated + read),
        "value_auc": auc_of(pairs),
    }


def _spent(run: Run, value: str) -> tuple[int, int]:
    """Tokens that the policy has generated so far, and those that the model `value` has read."""
    return run.policy.token_count.generated, run.model(value).token_count.scored


def _best(group: Group, value: str, run: Run) -> Trajectory:
    """The row that the model `value` values most."""
    values = last_values(run.model(value), group)
    return replace(group[int(np.argmax(values))])


def _verdicts(groups: list[Group], run: Run) -> list[list[bool]]:
    """Whether each row is right; a row without a verdict counts as wrong."""
    return [[(s.value or 0.0) >= 1.0 for s in row] for row in run.verify(groups, run)]
