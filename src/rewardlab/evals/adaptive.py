"""Best-of-n where a model that foretells success says how many samples each problem gets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Run, Sampling, Trajectory, last_values, measure
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.reranked import auc_within
from rewardlab.rewards.reward import Reward

NEVER = 1e-4
"""Chances are kept so far from 0 and 1."""


def samples_for(p: float, confidence: float, most: int) -> int:
    """How many samples, each right with chance p, hold a right one with this confidence: log(1 - C) / log(1 - p), 1 to `most`."""
    p = min(1 - NEVER, max(NEVER, p))
    return max(1, min(most, math.ceil(math.log(1 - confidence) / math.log(1 - p))))


@measure
def adaptive_best_of_n(
    problems: Sequence[Problem], run: Run, *, by: Reward, model: str = "prm", low: str = "low", confidence: NonNegativeFloat = 0.99,
    n: PositiveInt = 8, temperature: NonNegativeFloat = 1.0,
) -> dict[str, float]:  # fmt: skip
    """Accuracy of the reply that `by` pays most, among as many samples as a cautious forecast of success asks for; at most n.

    model, low: models whose value at the end of the prompt is the log-odds that a reply to it will be right; `low` says how many
    samples (`samples_for`).  adaptive: the accuracy; fixed: of the best of n; even: of the best of as many for every problem as
    the adaptive choice takes in the mean, rounded.  samples: that mean.  brier, overestimate: the mean of (p - share)^2, and of
    p - share, p what `model` says and share that of right ones among the n.  by_auc: as in `reranked`. All of the same samples, of
    which the first ones count; of replies paid alike, the first.
    """
    if run.verify is None:
        raise RewardlabError("adaptive_best_of_n needs the task's verifier, and this run has none: name a task")
    if not 0 < confidence < 1:
        raise RewardlabError(f"adaptive_best_of_n: confidence is {confidence:g}; give a number between 0 and 1")
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    said, cautious = (1 / (1 + np.exp(-np.clip(last_values(run.model(name), prompts), -60, 60))) for name in (model, low))
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, temperature), run.rng("eval"))
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    right = [[s.value is not None and s.value >= 1.0 for s in row] for row in run.verify(groups, run)]
    paid = [[-math.inf if s.total is None else s.total for s in row] for row in by(groups, run)]
    counts = [samples_for(float(p), confidence, n) for p in cautious]
    level = round(float(np.mean(counts)))
    adaptive, fixed, even = (
        [_best(*x) for x in zip(paid, right, among, strict=True)] for among in (counts, [n] * len(counts), [level] * len(counts))
    )
    off = said - np.array([np.mean(row) for row in right])
    bounds = mean_interval(adaptive)
    return {
        "adaptive": float(np.mean(adaptive)), "ci95_low": bounds[0], "ci95_high": bounds[1], "n": float(len(groups)),
        "fixed": float(np.mean(fixed)), "even": float(np.mean(even)), "samples": float(np.mean(counts)),
        "pass@1": float(np.mean(right)), "brier": float((off**2).mean()), "overestimate": float(off.mean()),
        "by_auc": auc_within(paid, right),
    }  # fmt: skip


def _best(paid: Sequence[float], right: Sequence[bool], k: int) -> bool:
    return right[int(np.argmax(paid[:k]))]
