"""Whether the preferred one of two steps is really the better one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure
from rewardlab.rewards.reward import Reward


@measure
def pair_purity(problems: Sequence[Problem], run: Run, *, rollout: Rollout, truth: Reward) -> dict[str, float]:
    """Of the pairs that `rollout` makes, by a reward that knows.

    purity: the share whose first row it pays more, ties half, 1/2 where there is none; telling: the share that it pays unlike;
    reversed: whose second it pays more; pairs: per problem.
    """
    groups = [group for group in rollout(list(problems), run) if any(t.mask.any() for t in group)]
    scores = [[s.total for s in row] for row in truth(groups, run)] if groups else []
    known = [(a, b) for a, b in scores if a is not None and b is not None]
    won = [(a > b) + (a == b) / 2 for a, b in known]
    return {
        "purity": float(np.mean(won)) if won else 0.5, "telling": float(np.mean([a != b for a, b in known])) if known else 0.0,
        "reversed": float(np.mean([a < b for a, b in known])) if known else 0.0, "pairs": len(known) / max(1, len(problems)),
    }  # fmt: skip
