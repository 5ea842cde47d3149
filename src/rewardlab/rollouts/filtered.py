"""Rollouts of which only those problems go on that the policy neither always solves nor hardly ever."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.errors import RewardlabError


@rollout
def solved_between(problems: list[Problem], run: Run, *, of: Rollout, low: float = 0.2, high: float = 0.8) -> list[Group]:
    """The groups in which the share of right replies, as the task's verifier says, is within [low, high].

    Where there is none, all of them: a step always has a batch. Rows without a verdict do not count.
    """
    if run.verify is None:
        raise RewardlabError("solved_between asks the task's verifier, and this run has none: name a task, or leave the filter out")
    groups = of(problems, run)
    known = [[s.value for s in row if s.value is not None] for row in run.verdicts(groups)]
    shares = [sum(v >= 1.0 for v in values) / max(1, len(values)) for values in known]
    return [g for g, share in zip(groups, shares, strict=True) if low <= share <= high] or groups
