"""Whether what a reward pays is right, and whether it pays what is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, Score, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward


@measure
def paid_right(problems: Sequence[Problem], run: Run, *, reward: Reward, truth: Reward, rollout: Rollout) -> dict[str, float]:
    """How far rewards of 0 and 1 are those of `truth`, on the replies that `rollout` samples; nothing is learnt.

    precision.X: of the replies that the term X pays at least 1, the share that is right; NaN where it pays none.  recall.X: of the
    right ones, the share that it pays; NaN where none is right.  paid.X: the share of all that it pays.  right: the share that is
    right, n: the replies. One without a verdict is not paid; without one by `truth` it is left out.
    Raises RewardlabError where `truth` gives no verdict at all.
    """
    groups = rollout(list(problems), run)
    rows = [
        (score, verdict.total >= 1.0)
        for row, true in zip(reward(groups, run), truth(groups, run), strict=True)
        for score, verdict in zip(row, true, strict=True)
        if verdict.total is not None
    ]
    if not rows:
        raise RewardlabError(f"paid_right: {truth} gives no verdict on any reply to {len(problems)} problems")
    right = np.array([ok for _, ok in rows])
    names = dict.fromkeys(name for score, _ in rows for name in score.terms)
    found: dict[str, float] = {}
    for name in names:
        paid = np.array([_paid(score, name) for score, _ in rows])
        found |= {f"precision.{name}": _share(right[paid]), f"recall.{name}": _share(paid[right]), f"paid.{name}": _share(paid)}
    low, high = mean_interval(right.astype(float).tolist())
    return {**found, "right": _share(right), "ci95_low": low, "ci95_high": high, "n": float(len(rows))}


def _paid(score: Score, name: str) -> bool:
    term = score.terms.get(name)
    return term is not None and term.value is not None and term.value >= 1.0


def _share(of: np.ndarray) -> float:
    return float(of.mean()) if len(of) else float("nan")
