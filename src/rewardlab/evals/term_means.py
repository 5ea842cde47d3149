"""The mean of each reward term, and the rate at which all terms are fully earned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Run, Sampling, Score, Trajectory, measure
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import NonNegativeFloat


@measure
def term_means(problems: Sequence[Problem], run: Run, *, reward: Reward, temperature: NonNegativeFloat = 1.0) -> dict[str, float]:
    """`all`: share of single samples that earn at least 1 in every term at once; and the mean of each term by its name.

    A term without a verdict is not earned. Terms of weight 0 or None are only details, and need not be earned.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    replies = run.policy.extend(prompts, Sampling(run.max_new, temperature), run.rng("eval"))
    # one reply per problem, so every group has one row
    scores = [row[0] for row in reward([[t] for t in replies], run)]
    terms = [_values(score) for score in scores]
    complete = [
        float(all(values[name] >= 1.0 for name, term in score.terms.items() if term.weight))
        for score, values in zip(scores, terms, strict=True)
    ]
    low, high = mean_interval(complete)
    means = {name: float(np.mean([values[name] for values in terms])) for name in terms[0]}
    return {"all": float(np.mean(complete)), "ci95_low": low, "ci95_high": high, "n": float(len(complete)), **means}


def _values(score: Score) -> dict[str, float]:
    """Each term's outcome plus its step rewards, unweighted."""
    return {name: (term.value or 0.0) + sum(r for _, r in term.steps) for name, term in score.terms.items()}
