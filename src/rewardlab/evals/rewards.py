"""Mean reward of a policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Run, Sampling, Trajectory, measure
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward


@measure
def mean_reward(
    problems: Sequence[Problem], run: Run, *, reward: Reward | None = None, temperature: NonNegativeFloat = 1.0, n: PositiveInt = 1
) -> dict[str, float]:
    """The mean reward of n replies to each problem, with its 95% interval over problems.

    reward: None means the task's verifier.  Replies without a verdict are left out, as are problems that have no other replies.
    """
    judge = reward or run.verify
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, temperature), run.rng("eval"))
    scores = judge([done[i : i + n] for i in range(0, len(done), n)], run)
    totals = [[s.total for s in row if s.total is not None] for row in scores]
    # averaged within a problem first: the interval is over problems, whose replies are not independent
    means = np.array([np.mean(row) for row in totals if row])
    if not len(means):
        raise RewardlabError(f"{judge} gave no verdict on any of {len(problems)} held-out problems")
    half = 1.959964 * float(np.std(means, ddof=1)) / len(means) ** 0.5 if len(means) > 1 else float("nan")
    mean = float(means.mean())
    return {"reward": mean, "ci95_low": mean - half, "ci95_high": mean + half, "n": float(len(means))}
