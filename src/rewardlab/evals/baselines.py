"""How near the baselines that credits subtract come to what a prompt's replies earn on average; nothing is learnt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Credit, Group, Problem, Rollout, Run, Score, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import paid_at_the_end
from rewardlab.rewards.reward import Reward


@measure
def baseline_error(
    problems: Sequence[Problem], run: Run, *, reward: Reward, truth: Rollout, rollouts: dict[str, Rollout],
    credits: dict[str, Credit],
) -> dict[str, float]:  # fmt: skip
    """error.X: mean square of (baseline - true mean reward) over problems, for the rollout and the credit of that name.

    The true mean is that of the replies that `truth` samples; its own variance is subtracted, so that an exact baseline has an
    error of 0 on average. The baseline is what the credit takes from a group's rewards, on average over its replies.
    replies.X: replies per problem.  n: problems.  Problems without a verdict are left out, under the rollouts that miss one.
    """
    if set(rollouts) != set(credits):
        raise RewardlabError(f"baseline_error compares rollouts and credits of one name: {sorted(rollouts)} and {sorted(credits)}")
    known = _means(truth(list(problems), run), reward, run)
    found: dict[str, float] = {}
    for name, play in rollouts.items():
        groups = play(list(problems), run)
        pairs = zip(groups, reward(groups, run), known, strict=True)
        errors = [e for group, scores, true in pairs if true and (e := _error(group, scores, true, credits[name], run)) is not None]
        found |= {f"error.{name}": float(np.mean(errors)) if errors else float("nan")}
        found |= {f"replies.{name}": float(np.mean([len(group) for group in groups]))}
    return {**found, "n": float(len(known) - known.count(None))}


def _means(groups: list[Group], reward: Reward, run: Run) -> list[tuple[float, float] | None]:
    """The mean of what each group earns, and the square of its standard error."""
    earned = [[s.total for s in row if s.total is not None] for row in reward(groups, run)]
    return [(float(np.mean(r)), float(np.var(r, ddof=1)) / len(r)) if len(r) > 1 else None for r in earned]


def _error(group: Group, scores: list[Score], true: tuple[float, float], credit: Credit, run: Run) -> float | None:
    """The square of (baseline - true mean), less the square of the latter's standard error; None without a verdict."""
    judged = [(t, s.total) for t, s in zip(group, scores, strict=True) if s.total is not None and t.mask.any()]
    if not judged:
        return None
    rows, paid = [t for t, _ in judged], [float(r) for _, r in judged]
    batch = paid_at_the_end(rows, paid, len(rows), run.policy.device)
    batch.rows = judged
    left = credit(batch.reward, batch, run)[batch.rewarded]
    mean, squared_error = true
    return float((np.mean(paid) - float(left.mean()) - mean) ** 2 - squared_error)
