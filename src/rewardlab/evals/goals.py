"""What a policy makes of goals in the prompt: of a pair of replies, the one whose score the prompt asks for should be likelier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward


@measure
def goal_margins(problems: Sequence[Problem], run: Run, *, rollout: Rollout, reward: Reward, least: float) -> dict[str, float]:
    """Teacher-forced on held-out pairs under both goals, as `under_both_goals` makes them; nothing is sampled.

    kept: log pi/ref per token of rejected replies that score at least `least`, each under its own score: below 0 they are unlearnt.
    preferred: share of pairs whose better reply gained more under its score, ties half.  told_apart: share in which it gained more
    on the other under its own score than under the other's, ties half; 1/2 where goals are not read.
    """
    if run.reference is None:
        raise RewardlabError("goal_margins needs a reference policy, and this method has none")
    groups = rollout(list(problems), run)
    rows = [t for group in groups for t in group]
    both = zip(rows, run.policy.score(rows), run.reference.score(rows), strict=True)
    gained = np.array([float((pi - ref)[t.mask].sum()) for t, pi, ref in both]).reshape(-1, 2, 2)  # pair, goal, (its reply, other)
    tokens = np.array([t.mask.sum() for t in rows]).reshape(-1, 2, 2)
    scores = np.array([s.total for row in reward(groups, run) for s in row], float).reshape(-1, 2, 2)
    near = scores[:, 1, 0] >= least
    if not near.any():
        raise RewardlabError(f"goal_margins: no rejected reply of {len(near)} pairs scores {least:g} or more by {reward}")
    margins = gained[..., 0] - gained[..., 1]  # under each goal, of its own reply over the other
    return {
        "kept": float((gained / tokens)[near, 1, 0].mean()), "preferred": _positive(margins[:, 0]),
        "told_apart": _positive(margins.sum(1)), "n": float(near.sum()),
    }  # fmt: skip


def _positive(x: np.ndarray) -> float:
    return float(((np.sign(x) + 1) / 2).mean())
