"""More replies to those problems whose first replies contradict what was expected of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, rollout
from rewardlab.core.domain import PositiveFloat, PositiveInt
from rewardlab.data.priors import PRIOR, is_doubted
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward


@rollout(inner="of")
def adaptive_resampling(
    problems: list[Problem], run: Run, *, of: Rollout, prior: Reward, reward: Reward | None = None, z: PositiveFloat = 1.0,
    most: PositiveInt = 16,
) -> list[Group]:  # fmt: skip
    """The groups that `of` samples, and, as long as a group contradicts its prior, as many replies again, up to `most` in all.

    prior: what a problem's replies are thought to earn on average, from 0 to 1; it is asked about the problem, without any reply.
    reward: what they earn; None: the task's verifier.  A group contradicts its prior where its mean reward is more than `z`
    standard errors away, as if the prior were true (`is_doubted`). Problems without a prior are not doubted. The prior stands in
    the rows' problem.meta["prior"], for the credit.  Logs the share of problems doubted, and replies per problem.
    """
    said = _priors(problems, prior, run)
    groups = of([_told(p, v) for p, v in zip(problems, said, strict=True)], run)
    doubts = open_groups = _contradicting(groups, range(len(groups)), reward, z, run)
    while open_groups := [g for g in open_groups if len(groups[g]) < most]:
        # by the sampler itself: what filters groups around it may give back fewer than were asked for, or others
        again = of.innermost([groups[g][0].problem for g in open_groups], run)
        for g, more in zip(open_groups, again, strict=True):
            groups[g] = [replace(t, path=(i,)) for i, t in enumerate([*groups[g], *more][:most])]
        open_groups = _contradicting(groups, open_groups, reward, z, run)
    run.log("doubted", len(doubts) / max(1, len(groups)))
    run.log("replies_per_problem", sum(map(len, groups)) / max(1, len(groups)))
    return groups


def _priors(problems: list[Problem], prior: Reward, run: Run) -> list[float | None]:
    # a reward is asked about trajectories: these have a problem, and nothing that was said
    scores = prior([[Trajectory(p)] for p in problems], run)
    found = [row[0].total for row in scores]
    if problems and all(v is None for v in found):
        raise RewardlabError(f"{prior} says nothing of any of {len(problems)} problems: {scores[0][0].why or 'no reason given'}")
    return found


def _told(problem: Problem, prior: float | None) -> Problem:
    return problem if prior is None else replace(problem, meta={**problem.meta, PRIOR: min(1.0, max(0.0, prior))})


def _contradicting(groups: list[Group], which: Sequence[int], reward: Reward | None, z: float, run: Run) -> list[int]:
    """Indices of the groups whose rewards contradict their prior."""
    asked = [groups[g] for g in which]
    scores = (reward(asked, run) if reward else run.verdicts(asked)) if asked else []
    known = [[s.total for s in row if s.total is not None] for row in scores]
    return [g for g, row in zip(which, known, strict=True) if is_doubted(row, groups[g][0].problem.meta.get(PRIOR), z)]
