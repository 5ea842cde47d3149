"""Whether a model of steps tells, after an error, a reply that corrects itself from one that goes on wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure, values
from rewardlab.rewards.reward import Reward
from rewardlab.util.ranking import auc_of


@measure
def after_errors(problems: Sequence[Problem], run: Run, *, truth: Reward, rollout: Rollout, model: str = "prm") -> dict[str, float]:
    """Of steps that follow a wrong one: after_auc, how often the model values a right one above a wrong one, 1/2 where one kind is
    missing; corrected, the share that is right.  step_auc: the same of all steps."""
    groups = rollout(list(problems), run)
    rows = [(t, dict(s.steps)) for g, row in zip(groups, truth(groups, run), strict=True) for t, s in zip(g, row, strict=True)]
    said = values(run.model(model), [t for t, _ in rows])
    each = [[(float(v[at]), paid > 0) for at, paid in known.items()] for v, (_, known) in zip(said, rows, strict=True)]
    after = [pair for row in each for before, pair in pairwise(row) if not before[1]]
    aucs = {"after_auc": auc_of(after), "step_auc": auc_of([pair for row in each for pair in row])}
    found = {name: 0.5 if np.isnan(x) else x for name, x in aucs.items()}
    return found | {"corrected": float(np.mean([ok for _, ok in after])) if after else 0.0, "n": float(len(after))}
