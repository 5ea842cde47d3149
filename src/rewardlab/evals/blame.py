"""Whether a model that was taught on outcomes alone knows when a reply has gone wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, Score, Trajectory, measure
from rewardlab.core.policy import values
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.util.ranking import auc_of


@measure
def outcome_critic_auc(problems: Sequence[Problem], run: Run, *, model: str, steps: Reward, rollout: Rollout) -> dict[str, float]:
    """A model's values before the decisions of the replies that `rollout` samples, in the mean over each reply so far.

    blame: after the first step, the second and so on, each but a reply's last, the AUC with which this number is higher where no
    step was wrong yet; the mean over these places.  outcome: the AUC with which it is higher at the end of right replies than of
    wrong ones.  n: replies with a verdict and with steps.  A half is chance; replies are compared at the same place, so that to
    fall or rise with every token is worth nothing.  steps: a reward of steps, 0 or less for a wrong one; the rollout marks their
    ends.  Raises RewardlabError if at no place some replies are still right and others not.
    """
    groups = rollout(list(problems), run)
    places: dict[int, list[tuple[float, bool]]] = {}
    ends: list[tuple[float, bool]] = []
    for group, scores, verdicts in zip(groups, steps(groups, run), run.verify(groups, run), strict=True):
        for t, score, verdict, value in zip(group, scores, verdicts, values(run.model(model), group), strict=True):
            if verdict.value is None or score.missing or not score.steps:
                continue
            decided, so_far = _so_far(t, value)
            ends.append((float(so_far[-1]), verdict.value >= 1))
            for k, (at, sound) in enumerate(_sound(score)):
                places.setdefault(k, []).append((float(so_far[np.searchsorted(decided, at, side="right")]), sound))
    known = [auc for row in places.values() if not math.isnan(auc := auc_of(row))]
    if not known:
        raise RewardlabError(f"blame: of the replies to {len(problems)} problems none goes wrong where another does not")
    return {"blame": float(np.mean(known)), "outcome": auc_of(ends), "n": float(len(ends))}


def _so_far(t: Trajectory, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The positions of the decisions, and at each the mean of the values before this one and those before it."""
    decided = np.flatnonzero(t.mask)
    return decided, np.cumsum(value[np.maximum(decided - 1, 0)]) / np.arange(1, len(decided) + 1)


def _sound(score: Score) -> list[tuple[int, bool]]:
    """Where each step but the last ends, and whether it and all before it are right."""
    paid = [x > 0 for _, x in score.steps]
    return [(at, all(paid[: k + 1])) for k, (at, _) in enumerate(score.steps[:-1])]
