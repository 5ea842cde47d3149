"""How well a judge with a tool finds what is wrong in solutions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure
from rewardlab.data.values import list_of
from rewardlab.evals.judges import first_error_f1
from rewardlab.text.inspections import inspections_of, is_about


@measure
def inspections_right(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, steps: str = "steps", verdicts: str = "verdicts"
) -> dict[str, float]:
    """step_f1: of the first wrong steps that episodes find.  right: share of steps with their label's verdict.  grounded: share of
    steps whose verdict came after the tool's answer about that step; blind: of the steps without, the share of right verdicts.

    steps, verdicts: the columns of the solution's steps, and of their labels. A step without a verdict is not found right.
    """
    rows = [t for group in rollout(list(problems), run) for t in group]
    gold, said, each = [], [], []
    for t in rows:
        labels = [bool(x) for x in list_of(t.problem.meta[verdicts]) or []]
        texts, found = list_of(t.problem.meta[steps]) or [], inspections_of(t)
        gold.append(labels)
        said.append([x.right for x in found[: len(labels)]])
        known = [(x.right == label, is_about(x.call, str(text))) for x, label, text in zip(found, labels, texts, strict=False)]
        each += known + [(False, False)] * (len(labels) - len(known))
    blind = [ok for ok, looked in each if not looked]
    return {
        "step_f1": first_error_f1(gold, said), "right": float(np.mean([ok for ok, _ in each])),
        "grounded": float(np.mean([looked for _, looked in each])), "blind": float(np.mean(blind)) if blind else 0.0,
        "n": float(len(rows)),
    }  # fmt: skip
