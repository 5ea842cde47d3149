"""The length of right replies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure
from rewardlab.errors import RewardlabError

from .passk import mean_interval


@measure
def length_of_right(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """pass@1 of what `rollout` samples, and the mean length of the right trajectories among them.

    right_length: sampled tokens.  log_right_length: its natural logarithm, so that the difference between two runs is a log ratio.
    right_calls: replies before the last one, each of which an environment answered.  All three are NaN if no reply is right. A
    rollout without a verdict counts as wrong.
    """
    if run.verify is None:
        raise RewardlabError("length_of_right needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    right = [[s.value is not None and s.value >= 1.0 for s in row] for row in run.verify(groups, run)]
    solved = [t for group, row in zip(groups, right, strict=True) for t, ok in zip(group, row, strict=True) if ok]
    shares = [float(np.mean(row)) for row in right]
    low, high = mean_interval(shares)
    # NaN, not 0: without a right reply there is no length, and 0 would look like a very short one
    length = float(np.mean([t.mask.sum() for t in solved])) if solved else math.nan
    calls = float(np.mean([len(t.ends) - 1 for t in solved])) if solved else math.nan
    return {
        "pass@1": float(np.mean(shares)), "ci95_low": low, "ci95_high": high, "n": float(len(shares)),
        "right_length": length, "log_right_length": math.log(length), "right_calls": calls,
    }  # fmt: skip
