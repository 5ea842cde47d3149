"""Filters: rollouts that drop groups without a training signal."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, rollout
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import Decay, NonNegativeFloat, NonNegativeInt, PositiveInt, Share

SPREAD = "spread_above.mean"


@rollout(wraps="inner")
def solved_between(
    problems: list[Problem], run: Run, *, inner: Rollout, low: Share = 0.2, high: Share = 0.8, attempts: PositiveInt = 1
) -> list[Group]:
    """The groups of `inner` with a pass rate, by the task's verifier, within [low, high].

    attempts: how often at most problems are sampled; each time after the first, as many further ones of the training data as
    groups are missing (dynamic sampling; Yu et al. 2025, arXiv:2503.14476). 1: a step uses the groups that are left.

    If there is no such group, all groups of the first attempt are returned, so that a step always has a batch. Rows without a
    verdict do not count.
    """
    if run.verify is None:
        raise RewardlabError("solved_between needs the task's verifier, and this run has none: name a task, or drop the filter")
    groups = inner(problems, run)
    kept = _between(groups, run, low, high)
    for _ in range(attempts - 1):
        # outside of training there are no further problems to ask for
        if run.more_problems is None or len(kept) >= len(problems):
            break
        kept += _between(inner(run.more_problems(len(problems) - len(kept)), run), run, low, high)
    return kept or groups


def _between(groups: list[Group], run: Run, low: float, high: float) -> list[Group]:
    # remembered for the step, so the reward does not verify these rollouts again
    verdicts = [[s.value for s in row if s.value is not None] for row in run.verdicts(groups)]
    shares = [sum(v >= 1.0 for v in values) / max(1, len(values)) for values in verdicts]
    return [g for g, share in zip(groups, shares, strict=True) if low <= share <= high]


# the mean is over all of the step's groups, which processes must not find apart
@rollout(wraps="inner", across_problems=True)
def spread_above(
    problems: list[Problem], run: Run, *, inner: Rollout, by: Reward, share: NonNegativeFloat = 0.5, decay: Decay = 0.99,
    start: NonNegativeInt = 10, attempts: PositiveInt = 1,
) -> list[Group]:  # fmt: skip
    """The groups of `inner` in which the standard deviation of the reward `by` is at least `share` of its running mean.

    The mean is over the groups sampled in the steps before, those that were dropped too, one step weighing less than the next by
    `decay`. start: steps that drop none.  attempts: how often at most problems are sampled, as in `solved_between`. If there is no
    such group, those of the first attempt are returned. Replies without a verdict do not count; nor do groups with fewer than two.
    Yu et al. 2025, arXiv:2506.18254
    """
    saved = run.memory.get(SPREAD, {"step": run.step, "before": None, "now": None})
    before = saved["before"] if saved["step"] == run.step else saved["now"]
    least = share * before if before is not None and run.step >= start else -1.0
    groups, seen, kept = inner(problems, run), [], []
    new = groups
    for left in reversed(range(attempts)):
        spreads = [_spread([s.total for s in row if s.total is not None]) for row in by(new, run)]
        seen += [x for x in spreads if x is not None]
        kept += [g for g, x in zip(new, spreads, strict=True) if least < 0 or (x is not None and x >= least)]
        if not left or run.more_problems is None or len(kept) >= len(problems):
            break
        new = inner(run.more_problems(len(problems) - len(kept)), run)
    mean = float(np.mean(seen)) if seen else before
    now = mean if before is None or mean is None else decay * before + (1 - decay) * mean
    run.memory[SPREAD] = {"step": run.step, "before": before, "now": now}
    if seen:
        run.log("spread", float(np.mean(seen)))
    run.log("spread_kept", len(kept) / max(1, len(problems)))
    return kept or groups


@rollout(wraps="inner", across_problems=True)
def without_lowest(problems: list[Problem], run: Run, *, inner: Rollout, by: Reward, drop: Share = 0.25) -> list[Group]:
    """The groups of `inner` without the share `drop` with the lowest mean reward `by`; at least one is kept.

    Groups on which `by` has no verdict go first; of equal ones the later. The groups that are left stay in their order.
    """
    groups = inner(problems, run)
    paid = [[s.total for s in row if s.total is not None] for row in by(groups, run)]
    means = [float(np.mean(row)) if row else -np.inf for row in paid]
    # sorted is stable, so that ties keep the order of the batch
    order = sorted(range(len(groups)), key=lambda g: -means[g])
    kept = sorted(order[: max(1, len(groups) - int(drop * len(groups)))])
    return [groups[g] for g in kept]


def _spread(paid: list[float]) -> float | None:
    return float(np.std(paid, ddof=1)) if len(paid) > 1 else None
