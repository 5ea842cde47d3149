"""Filters: rollouts that drop groups without a training signal."""

from __future__ import annotations

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError


@rollout(inner="of")
def solved_between(
    problems: list[Problem], run: Run, *, of: Rollout, low: Share = 0.2, high: Share = 0.8, attempts: PositiveInt = 1
) -> list[Group]:
    """The groups sampled by `of` in which the share of right replies, by the task's verifier, is within [low, high].

    attempts: how often at most problems are sampled; each time after the first, as many further ones of the training data as
    groups are missing (dynamic sampling; Yu et al. 2025, arXiv:2503.14476). 1: a step uses the groups that are left.

    If there is no such group, all groups of the first attempt are returned, so that a step always has a batch. Rows without a
    verdict do not count.
    """
    if run.verify is None:
        raise RewardlabError("solved_between needs the task's verifier, and this run has none: name a task, or drop the filter")
    groups = of(problems, run)
    kept = _between(groups, run, low, high)
    for _ in range(attempts - 1):
        # outside of training there are no further problems to ask for
        if run.more_problems is None or len(kept) >= len(problems):
            break
        kept += _between(of(run.more_problems(len(problems) - len(kept)), run), run, low, high)
    return kept or groups


def _between(groups: list[Group], run: Run, low: float, high: float) -> list[Group]:
    # remembered for the step, so the reward does not verify these rollouts again
    verdicts = [[s.value for s in row if s.value is not None] for row in run.verdicts(groups)]
    shares = [sum(v >= 1.0 for v in values) / max(1, len(values)) for values in verdicts]
    return [g for g, share in zip(groups, shares, strict=True) if low <= share <= high]
