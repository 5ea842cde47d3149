"""Accuracy of a judge on outcomes, steps, and first errors of solutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, measure
from rewardlab.rewards.reward import Reward
from rewardlab.util.outputs import values
from rewardlab.util.ranking import auc_of


@measure
def judge_auc(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, steps: Reward | None = None, model: str = "reward",
    implicit: bool = False,
) -> dict[str, float]:  # fmt: skip
    """AUC of the model `model` for right over wrong replies, and for right over wrong steps; ties count half.

    rollout: writes the replies to be judged; it marks their steps.  steps: a reward that says which steps are right.  The score is
    the value at the end of a step or reply or, if `implicit`, the sum of log(model / reference) over its tokens.
    outcome_auc: of replies, by the task's verifier.  outcome_auc_within: the mean over the problems that have both right and wrong
    replies.  step_auc: of steps.  NaN where there is nothing to compare. Replies without a verdict are left out.
    """
    groups = rollout(list(problems), run)
    right = [[s.value for s in row] for row in run.verify(groups, run)]
    scored = [_scores(run, model, group, implicit) for group in groups]
    outcomes = [
        [(whole, v >= 1.0) for (whole, _), v in zip(row, verdicts, strict=True) if v is not None]
        for row, verdicts in zip(scored, right, strict=True)
    ]
    found = {"outcome_auc": auc_of([pair for row in outcomes for pair in row])}
    within = [a for row in outcomes if not math.isnan(a := auc_of(row))]
    found |= {"outcome_auc_within": float(np.mean(within)) if within else math.nan, "n": float(sum(map(len, outcomes)))}
    if steps is None:
        return found
    labels = [[dict(s.steps) for s in row] for row in steps(groups, run)]
    judged = [
        (score, label[at] > 0)
        for row, row_labels in zip(scored, labels, strict=True)
        for (_, by_step), label in zip(row, row_labels, strict=True)
        for at, score in by_step.items()
        if at in label
    ]
    return {"step_auc": auc_of(judged), **found}


def _scores(run: Run, name: str, group: Group, implicit: bool) -> list[tuple[float, dict[int, float]]]:
    """For each row, the score of the reply, and that of each step by the position at which it ends."""
    judge = run.model(name)
    if implicit:
        reference = run.model("reference")
        pairs = zip(judge.score(group), reference.score(group), group, strict=True)
        return [_sums(np.where(t.mask, ours - theirs, 0.0), t) for ours, theirs, t in pairs]
    return [(float(v[-1]), {at: float(v[at]) for at in t.steps}) for v, t in zip(values(judge, group), group, strict=True)]


def _sums(tokens: np.ndarray, t: Trajectory) -> tuple[float, dict[int, float]]:
    """The sums of tokens' scores over a reply and over each of its steps."""
    total = np.concatenate(([0.0], np.cumsum(tokens, dtype=np.float64)))
    starts = (0, *(at + 1 for at in t.steps[:-1]))
    return float(total[-1]), {at: float(total[at + 1] - total[start]) for start, at in zip(starts, t.steps, strict=False)}


def first_error(steps: Sequence[bool]) -> int | None:
    """Index of the first step that is wrong; None where all are right."""
    return next((i for i, ok in enumerate(steps) if not ok), None)


def first_error_f1(gold: Sequence[Sequence[bool]], judged: Sequence[Sequence[bool]]) -> float:
    """How well first errors are located: the harmonic mean of two shares, of error-free solutions judged error-free, and of flawed
    solutions whose first error is located. A judgement that leaves a step out counts as wrong in both.

    Zheng et al. 2024, arXiv:2412.06559
    """
    clean, flawed = first_error_accuracies(gold, judged)
    return 2 * clean * flawed / (clean + flawed) if clean + flawed else 0.0


def first_error_accuracies(gold: Sequence[Sequence[bool]], judged: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """The two shares of `first_error_f1`: of error-free solutions judged so, and of flawed ones whose first error is located."""
    located: dict[bool, list[bool]] = {True: [], False: []}
    for gold_steps, verdicts in zip(gold, judged, strict=True):
        position = first_error(gold_steps)
        located[position is None].append(len(verdicts) == len(gold_steps) and first_error(verdicts) == position)
    clean, flawed = (sum(located[k]) / max(1, len(located[k])) for k in (True, False))
    return clean, flawed
