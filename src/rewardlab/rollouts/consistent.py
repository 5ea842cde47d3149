"""Groups of which only those replies are kept whose reasoning and whose outcome say the same."""

from __future__ import annotations

import math

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Score, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.rewards.reward import Reward


@rollout(inner="of")
def consistent(
    problems: list[Problem], run: Run, *, of: Rollout, process: Reward, keep: PositiveInt = 4, penalty: NonNegativeFloat = 0.0,
    most: PositiveInt = 30,
) -> list[Group]:  # fmt: skip
    """Of each group that `of` samples, `keep` replies: the right ones of the highest process value and the wrong ones of the
    lowest, half of each, or as near to that as there are right and wrong ones.

    process: a reward of steps; a reply's process value is their mean, less `penalty` where it has one step alone, or `most` or
    more.  Verdicts are those of the task's verifier. Replies without one are dropped, unless fewer than `keep` have any; of those
    without a process value the others are preferred. Logs how many right and how many wrong replies are kept, per group.
    Ye et al. 2025, arXiv:2509.03403
    """
    groups = of(problems, run)
    rows = zip(groups, run.verdicts(groups), process(groups, run), strict=True)
    kept = [_kept(group, verdicts, [_value(s, penalty, most) for s in scores], keep) for group, verdicts, scores in rows]
    for name, wanted in (("kept_right", True), ("kept_wrong", False)) if kept else ():
        counts = [sum(v.value is not None and (v.value >= 1) == wanted for v in row) for row in run.verdicts(kept)]
        run.log(name, float(np.mean(counts)))
    return kept


def _value(score: Score, penalty: float, most: int) -> float | None:
    if score.missing or not score.steps:
        return score.total
    steps = [paid for _, paid in score.steps]
    return math.fsum(steps) / len(steps) - (penalty if len(steps) == 1 or len(steps) >= most else 0.0)


def _kept(group: Group, verdicts: list[Score], values: list[float | None], keep: int) -> Group:
    right = [i for i, v in enumerate(verdicts) if v.value is not None and v.value >= 1]
    wrong = [i for i, v in enumerate(verdicts) if v.value is not None and v.value < 1]
    if len(right) + len(wrong) < keep:
        return group

    # sorted is stable: of equal replies the first are kept
    def consistency(i: int, sign: int) -> float:
        return -math.inf if (value := values[i]) is None else sign * value

    of_right = min(len(right), max(keep // 2, keep - len(wrong)))
    chosen = sorted(right, key=lambda i: -consistency(i, 1))[:of_right]
    chosen += sorted(wrong, key=lambda i: -consistency(i, -1))[: keep - of_right]
    return [group[i] for i in sorted(chosen)]
