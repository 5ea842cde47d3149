"""Whether a model of progress finds the turns that bring an episode on."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure, values
from rewardlab.rewards.reward import Reward
from rewardlab.util.ranking import auc_of


@measure
def progress_found(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, truth: Reward, model: str = "progress", critic: str = "critic"
) -> dict[str, float]:
    """How often a turn that `truth` pays has a higher number than one that it does not pay, of all turns that it speaks of.

    auc.progress: the number is the value of `model` at the turn's end.  auc.critic: by how much the value of `critic` rises from
    the end of the turn before to that of this one.  calibration: the correlation over episodes of the sum of the former and whether
    the episode is right, by the task's verifier. NaN where one kind of turns is missing.  n: turns.  pass@1: of the episodes.
    """
    groups = rollout(list(problems), run)
    rows = [t for group in groups for t in group]
    paid = [dict(s.steps) for row in truth(groups, run) for s in row]
    said, worth = values(run.model(model), rows), values(run.model(critic), rows)
    turns, rises = [], []
    for t, steps, v, w in zip(rows, paid, said, worth, strict=True):
        before = int(np.argmax(t.mask)) - 1  # the end of the prompt
        for end in t.ends:
            if end in steps:
                turns.append((float(v[end]), steps[end] >= 1.0))
                rises.append((float(w[end] - w[before]), steps[end] >= 1.0))
            before = end
    right = [s.value is not None and s.value >= 1.0 for row in run.verify(groups, run) for s in row]
    sums = [float(sum(v[end] for end in t.ends)) for t, v in zip(rows, said, strict=True)]
    fit = float(np.corrcoef(sums, right)[0, 1]) if len(set(right)) > 1 and np.ptp(sums) else math.nan
    return {
        "pass@1": float(np.mean(right)), "auc.progress": auc_of(turns), "auc.critic": auc_of(rises), "calibration": fit,
        "n": float(len(turns)),
    }  # fmt: skip
