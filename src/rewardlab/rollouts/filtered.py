"""Filters: rollouts that drop groups without a training signal."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import Share
from rewardlab.errors import RewardlabError


@rollout(inner="of")
def solved_between(problems: list[Problem], run: Run, *, of: Rollout, low: Share = 0.2, high: Share = 0.8) -> list[Group]:
    """The groups sampled by `of` in which the share of right replies, by the task's verifier, is within [low, high].

    If there is no such group, all groups are returned, so that a step always has a batch. Rows without a verdict do not count.
    """
    if run.verify is None:
        raise RewardlabError("solved_between needs the task's verifier, and this run has none: name a task, or drop the filter")
    groups = of(problems, run)
    # remembered for the step, so the reward does not verify these rollouts again
    verdicts = [[s.value for s in row if s.value is not None] for row in run.verdicts(groups)]
    shares = [sum(v >= 1.0 for v in values) / max(1, len(values)) for values in verdicts]
    return [g for g, share in zip(groups, shares, strict=True) if low <= share <= high] or groups
