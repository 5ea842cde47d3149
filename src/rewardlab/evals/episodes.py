"""Accuracy at the end of an episode."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure
from rewardlab.errors import RewardlabError

from .passk import mean_interval


@measure
def episode_accuracy(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """pass@1 of the episodes that `rollout` samples, one or more per problem, by the task's verifier.

    turns: the mean number of replies per episode. A rollout without a verdict counts as wrong.
    """
    if run.verify is None:
        raise RewardlabError("episode_accuracy needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    # averaged within a problem first: the interval is over problems, whose episodes are not independent
    right = [float(np.mean([s.value is not None and s.value >= 1.0 for s in row])) for row in run.verify(groups, run)]
    low, high = mean_interval(right)
    turns = float(np.mean([len(t.ends) for group in groups for t in group]))
    return {"pass@1": float(np.mean(right)), "ci95_low": low, "ci95_high": high, "n": float(len(right)), "turns": turns}
