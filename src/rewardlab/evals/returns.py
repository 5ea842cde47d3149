"""Return of a policy in its environment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure


@measure
def episode_return(problems: Sequence[Problem], run: Run, *, play: Rollout) -> dict[str, float]:
    """return: the mean undiscounted sum of the rewards of an episode, with its normal 95% interval over problems.

    steps: decisions per episode.  play: the rollout that samples the episodes.
    """
    groups = play(list(problems), run)
    # one number per problem, since episodes of one problem are not independent
    totals = np.array([np.mean([sum(r for _, r in t.paid) for t in group]) for group in groups])
    half = 1.959964 * float(totals.std(ddof=1)) / len(totals) ** 0.5 if len(totals) > 1 else 0.0
    mean = float(totals.mean())
    steps = float(np.mean([t.mask.sum() for group in groups for t in group]))
    return {"return": mean, "ci95_low": mean - half, "ci95_high": mean + half, "n": float(len(totals)), "steps": steps}
