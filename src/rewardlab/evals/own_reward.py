"""A run's own reward on held-out problems, with the verifier's accuracy beside it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, check_finite, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward
from rewardlab.settings.options import is_relative
from rewardlab.util.intervals import interval


@measure
def own_reward(problems: Sequence[Problem], run: Run, *, reward: Reward, rollout: Rollout) -> dict[str, float]:
    """reward: the mean of `reward` over what `rollout` samples for each problem, with its 95% interval over problems, where these
    have one (`interval_of`).

    pass@1: the share of it that the task's verifier finds right, where that gives any verdict (data without answers has none).
    Rollouts without a reward are left out of its mean; without a verdict, they count as wrong. Raises RewardlabError for a reward
    that compares the replies of a group (`is_relative`) where no group has two: it is the same number whatever is said.
    """
    # a reward may remember what it has seen: held-out problems must not change what it pays in training
    aside = replace(run, memory=copy.deepcopy(run.memory))
    groups = rollout(list(problems), aside)
    if is_relative(reward) and all(len(group) < 2 for group in groups):
        raise RewardlabError(
            f"own_reward: {reward} compares the replies to a problem with one another, and {rollout} samples one of each: "
            "sample several, as independent(n=4)"
        )
    scores = reward(groups, aside)
    # NaN is the reward's: said here, where the rollout is known
    check_finite(groups, scores, str(reward))
    totals = [[s.total for s in row if s.total is not None] for row in scores]
    # averaged within a problem first: the interval is over problems, whose rollouts are not independent
    means = [float(np.mean(row)) for row in totals if row]
    if not means:
        why = next((s.why for row in scores for s in row if s.why), "it gave no reason")
        raise RewardlabError(f"{reward} gave no verdict on any of {len(problems)} held-out problems: {why}")
    bounds = dict(zip(("ci95_low", "ci95_high"), interval_of(means) or (), strict=False))
    return {"reward": float(np.mean(means)), **bounds, "n": float(len(means)), **_accuracy(groups, aside)}


def interval_of(values: Sequence[float]) -> tuple[float, float] | None:
    """95% interval of the mean of rewards, which have no range to clip it to: Student's, or Wilson's where all are 0 or 1; None for
    one number, or several that are all the same, which tell nothing of the spread.
    """
    # of zeros alone, or ones, Student's would have no width; Wilson's has
    if len(values) > 1 and set(values) <= {0.0, 1.0}:
        return mean_interval(values)
    if len(set(values)) < 2:
        return None
    _, low, high = interval(np.asarray(values, float))
    return float(low), float(high)


def _accuracy(groups: list[Group], run: Run) -> dict[str, float]:
    values = [[s.value for s in row] for row in run.verify(groups, run)] if run.verify is not None else []
    if all(v is None for row in values for v in row):
        return {}
    return {"pass@1": float(np.mean([np.mean([v is not None and v >= 1.0 for v in row]) for row in values]))}
