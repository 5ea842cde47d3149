"""What a judge of steps is worth on solutions that the policy writes: ranking steps, finding first errors, choosing solutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, measure, values
from rewardlab.core.domain import Share
from rewardlab.evals.judges import first_error_f1
from rewardlab.rewards.reward import Reward
from rewardlab.util.ranking import auc_of

Judged = list[tuple[float, bool]]
"""The score of each step, from 0 to 1, and whether it is right."""


@measure
def step_judgements(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, steps: Reward, model: str = "prm", threshold: Share = 0.5
) -> dict[str, float]:
    """How well the values of `model` at the ends of steps, as log-odds of being right, judge solutions that `rollout` samples.

    steps: a reward that says which steps are right (above 0).
    first_error_f1: a step below `threshold` is judged wrong; the harmonic mean of the shares of clean solutions judged clean and of
    flawed ones whose first error is found, as ProcessBench has it.  step_auc: how often a right step scores above a wrong one, ties
    counting half.  best_of_k: accuracy of the solution whose least step score is highest, the first of equals.  pass@1: of all.
    Solutions without a verdict, or whose steps have no labels, are left out; what nothing is left for is NaN.
    """
    groups = rollout(list(problems), run)
    right = [[s.value for s in row] for row in run.verify(groups, run)]
    labels = [[dict(s.steps) for s in row] for row in steps(groups, run)]
    judged = [_judged(run, model, group, row) for group, row in zip(groups, labels, strict=True)]
    known = [
        [(j, v >= 1.0) for j, v in zip(row, verdicts, strict=True) if j and v is not None]
        for row, verdicts in zip(judged, right, strict=True)
    ]
    known = [row for row in known if row]
    each = [j for row in known for j, _ in row]
    if not each:
        return dict.fromkeys(("first_error_f1", "step_auc", "best_of_k", "pass@1"), float("nan"))
    f1 = first_error_f1([[ok for _, ok in j] for j in each], [[score >= threshold for score, _ in j] for j in each])
    return {
        # the first number chooses the best model, and is finite where every step is wrong
        "first_error_f1": f1,
        "step_auc": auc_of([step for j in each for step in j]),
        "best_of_k": float(np.mean([max(row, key=_least)[1] for row in known])),
        "pass@1": float(np.mean([np.mean([ok for _, ok in row]) for row in known])),
        "n": float(len(each)),
    }


def _least(solution: tuple[Judged, bool]) -> float:
    return min(score for score, _ in solution[0])


def _judged(run: Run, model: str, group: Group, labels: list[dict[int, float]]) -> list[Judged]:
    """Of each solution the score of every step that has a label."""
    said = values(run.model(model), group)
    return [
        [(float(1 / (1 + np.exp(-v[at]))), label[at] > 0) for at in t.steps if at in label]
        for v, t, label in zip(said, group, labels, strict=True)
    ]
